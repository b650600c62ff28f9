//! `--version`: what a report of an error needs to say.

use std::process::Command;

use hcomm_aicpu::spec::mailbox::MAILBOX_VERSION;

/// Emulators, and what each is for.
const EMULATORS: [(&str, &str); 2] = [("qemu-system-aarch64", "--cpu qemu"), ("qemu-aarch64", "--cpu linux")];

/// Version and commit of this program, the interface of the images that it runs, and the emulators that are installed.
pub fn text() -> String {
    // Set by `make install`: a build that asked for the commit would start again with each one.
    let commit = option_env!("HCOMM_COMMIT").filter(|commit| !commit.is_empty()).unwrap_or("unknown");
    let mut lines = vec![
        format!("host-stub {}", env!("CARGO_PKG_VERSION")),
        format!("commit: {commit}"),
        format!("image interface: {MAILBOX_VERSION}"),
    ];
    lines.extend(EMULATORS.map(|(name, what)| {
        let found = version_of(name).unwrap_or_else(|| "not found".to_owned());
        format!("{name} ({what}): {found}")
    }));
    lines.join("\n") + "\n"
}

/// First line of what an emulator says of itself, from the number on.
fn version_of(name: &str) -> Option<String> {
    let output = Command::new(name).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next()?;
    Some(line.split_once("version ").map_or(line, |(_, number)| number).to_owned())
}
