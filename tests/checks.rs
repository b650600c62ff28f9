//! Checks of what a program does: their findings, on both CPUs, and what their list makes of them.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{Call, CallListParams};
use hcomm_testkit::calls::{copy, record};
use hcomm_testkit::{CPUS, Rig, pattern};
use host_stub::{Check, Checks, DeviceOptions, LaunchOptions};
use zerocopy::IntoBytes;

/// Launches kernel `call_list`, which ignores the codes of its calls, and gives the text of the error, if there is one.
fn run_carelessly(rig: &Rig, list: &[Call], options: LaunchOptions) -> Option<String> {
    let (entries, codes) = (rig.buffer(list.as_bytes()), rig.buffer(&vec![0xee; list.len() * 4]));
    let (header, count) = (CallListParams::HEADER, list.len() as u64);
    let params = CallListParams { header, list: entries.addr(), count, codes: codes.addr() };
    let kernel = rig.device.load_kernel("call_list").unwrap();
    rig.stream.launch_bytes_with(&kernel, params.as_bytes(), LaunchOptions { drain: true, ..options }).unwrap();
    rig.stream.synchronize().err().map(|error| error.to_string())
}

/// Case 321.
#[test]
fn kernel_that_ignores_a_refused_call_fails_its_launch() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let (src, dst) = (rig.buffer(&pattern(64, 1)), rig.buffer(&[0; 64]));
        let null = copy(first, DeviceAddr(0), src.addr(), 64);
        let list = [null, copy(first, dst.addr(), src.addr(), 64), null, record(first, second, 99)];
        let error = run_carelessly(&rig, &list, LaunchOptions::default()).expect("calls were refused");
        for text in [
            "507018",
            "kernel call_list returned 0 although calls of it were refused",
            "HcommLocalCopyOnThread: dst is null (code 2, HCCL_E_PTR), 2 times",
            "HcommThreadNotifyRecordOnThread: notify index 99, the thread has 1 (code 2, HCCL_E_PTR)",
        ] {
            assert!(error.contains(text), "{cpu:?}: {error}");
        }
        assert_eq!(rig.read(&dst), pattern(64, 1), "{cpu:?}: the other call has done its work");
        // The device goes on; a launch whose calls are there to be refused is not looked at.
        assert_eq!(run_carelessly(&rig, &list[1..2], LaunchOptions::default()), None, "{cpu:?}");
        let options = LaunchOptions { expects_refusals: true, ..LaunchOptions::default() };
        assert_eq!(run_carelessly(&rig, &list, options), None, "{cpu:?}");
    }
}

#[test]
fn list_of_checks_decides_about_ignored_refusals() {
    for cpu in CPUS {
        for checks in [Checks::DEFAULT.warning(Check::Calls), Checks::DEFAULT.without(Check::Calls), Checks::NONE] {
            let rig = Rig::with_options(DeviceOptions { cpu, checks: Some(checks), ..DeviceOptions::default() });
            let (thread, src) = (rig.threads(1, 0, 8)[0], rig.buffer(&[1]));
            let null = copy(thread, DeviceAddr(0), src.addr(), 1);
            assert_eq!(run_carelessly(&rig, &[null], LaunchOptions::default()), None, "{cpu:?} {checks}");
        }
    }
}

/// Case 323.
#[test]
fn freed_memory_is_told_as_freed_although_the_program_has_allocated_since() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (thread, src) = (rig.threads(1, 0, 8)[0], rig.buffer(&pattern(4096, 1)));
        let old = rig.device.allocate(4096).unwrap();
        rig.device.free(old).unwrap();
        let new = rig.buffer(&[0; 4096]);
        assert_ne!(new.addr(), old);
        let error = rig.calls(&[copy(thread, old, src.addr(), 4096)]).unwrap_err().to_string();
        assert!(error.contains("which was freed before the first launch was queued"), "{cpu:?}: {error}");
    }
}

#[test]
fn memory_is_used_again_at_once_if_the_check_is_off() {
    let checks = Some(Checks::DEFAULT.without(Check::Free));
    let rig = Rig::with_options(DeviceOptions { checks, ..DeviceOptions::native() });
    let old = rig.device.allocate(4096).unwrap();
    rig.device.free(old).unwrap();
    assert_eq!(rig.device.allocate(4096).unwrap(), old);
}
