//! The plugin of QEMU that sees what kernels' own code accesses, for the check `core`: where it is, and whether it works.
#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::map::OWN_ACCESS_PHYS;
use hcomm_aicpu::spec::own_access::{OWN_ACCESS_STRIDE, OWN_ACCESS_VERSION, OWN_ACCESSES, OwnAccessRing};
use hcomm_mapping::SharedMemory;
use hcomm_sim::memory::Memory;
use hcomm_sim::own_accesses::{OwnAccessReader, OwnRange};

use crate::error::Error;

/// Environment variable that names the plugin.
pub const PLUGIN_VAR: &str = "HCOMM_CORE_PLUGIN";
/// File name of the plugin.
const PLUGIN: &str = "libhcomm_core_plugin.so";
/// One access in so many of a ring waits: time to take them.
const MANY: u64 = OWN_ACCESSES as u64 / 4;

/// The file of the plugin.
#[derive(Clone, Debug)]
pub struct CorePlugin(PathBuf);

impl CorePlugin {
    /// Looks for it: `HCOMM_CORE_PLUGIN`, where it is installed, then the target folders.
    ///
    /// # Errors
    /// [`Error::MissingTool`].
    pub fn find() -> Result<Self, Error> {
        let missing = |what| Error::MissingTool { what, command: "make image".to_owned() };
        if let Some(path) = std::env::var_os(PLUGIN_VAR).map(PathBuf::from) {
            return if path.is_file() {
                Ok(Self(path))
            } else {
                Err(missing(format!("{PLUGIN_VAR} is {}: no such file", path.display())))
            };
        }
        let installed = crate::installed::folders().into_iter().map(|folder| folder.join(PLUGIN));
        let built = crate::loader::target_folders().into_iter().map(|folder| folder.join("debug").join(PLUGIN));
        let looked: Vec<_> = installed.chain(built).collect();
        match looked.iter().find(|path| path.is_file()) {
            Some(path) => Ok(Self(path.clone())),
            None => {
                let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
                Err(missing(format!(
                    "the plugin of the check core is not built (looked for {}; {PLUGIN_VAR} names another file)",
                    looked.join(", ")
                )))
            }
        }
    }

    /// Value of QEMU's option `-plugin`, for the device in `memory`.
    pub fn option(&self, memory: &SharedMemory, file: i32) -> String {
        // A comma ends a value; two of them stand for one.
        let path = self.0.display().to_string().replace(',', ",,");
        format!("file={path},memory={file},hbm={},size={}", memory.hbm_base(), memory.hbm_size())
    }
}

/// What the text of a QEMU that does not start says about the plugin; `None`: that is not the cause.
pub fn refusal(stderr: &str) -> Option<String> {
    let lines = stderr.lines().map(str::trim);
    let mut about = lines.filter(|line| line.contains("plugin"));
    let first = about.next()?;
    let text = std::iter::once(first).chain(about).collect::<Vec<_>>().join("; ");
    Some(format!("{text} (the plugin needs a QEMU with plugins of interface version 1: 4.2 to 8.2)"))
}

/// The host's end of a plugin that is loaded.
pub struct OwnAccesses {
    memory: Arc<SharedMemory>,
    readers: Vec<OwnAccessReader>,
    /// `seq` of the last record of a call that was taken, of each core.
    calls: Vec<u64>,
    has_warned: bool,
}

impl OwnAccesses {
    /// For `cores` cores, before the plugin is loaded.
    pub fn new(memory: &Arc<SharedMemory>, cores: usize) -> Self {
        memory.zero_low(OWN_ACCESS_PHYS, cores * OWN_ACCESS_STRIDE as usize);
        let readers = (0..cores).map(OwnAccessReader::new).collect();
        Self { memory: Arc::clone(memory), readers, calls: vec![0; cores], has_warned: false }
    }

    fn header(&self, offset: usize) -> u64 {
        self.memory.word64(OWN_ACCESS_PHYS + offset as u64).load(Ordering::Acquire)
    }

    /// Whether the plugin works, after the program has run for a while.
    ///
    /// # Errors
    /// It is of another version, or sees nothing; as a message.
    pub fn check(&self) -> Result<(), String> {
        let version = self.header(offset_of!(OwnAccessRing, version));
        if version != u64::from(OWN_ACCESS_VERSION) {
            return Err(format!(
                "its plugin has version {version} of the ring, this program {OWN_ACCESS_VERSION}: type `make image`"
            ));
        }
        match self.header(offset_of!(OwnAccessRing, blocks)) {
            0 => Err("QEMU has loaded its plugin and shows it no code".to_owned()),
            _ => Ok(()),
        }
    }

    /// Drops what the program has accessed outside kernels.
    pub fn skip(&mut self) {
        self.readers.iter_mut().for_each(|reader| reader.skip(&*self.memory));
    }

    /// A record of a call was taken.
    pub fn record_taken(&mut self, core: usize, seq: u64) {
        self.calls[core] = seq;
    }

    /// As [`Cpu::take_own_accesses`](hcomm_sim::cpu::Cpu::take_own_accesses).
    pub fn take(&mut self, core: usize, before: Option<u64>, each: &mut dyn FnMut(OwnRange)) {
        let calls = before.map_or(self.calls[core], |seq| seq.saturating_sub(1));
        self.readers[core].take(&*self.memory, calls, each);
        if !self.has_warned && self.header(offset_of!(OwnAccessRing, has_unseen)) != 0 {
            self.has_warned = true;
            log::warn!(
                "check core: the program has instructions whose accesses QEMU's plugins do not see (dc zva, or SVE): their \
                 stores count as none"
            );
        }
    }

    /// As [`Cpu::has_many_own_accesses`](hcomm_sim::cpu::Cpu::has_many_own_accesses).
    pub fn has_many(&self, core: usize) -> bool {
        self.readers[core].waiting(&*self.memory) > MANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_qemu_says_of_the_plugin_is_the_message() {
        let old = "qemu-system-aarch64: -plugin file=a.so: invalid option";
        assert!(
            refusal(old)
                .unwrap()
                .starts_with("qemu-system-aarch64: -plugin file=a.so: invalid option (the plugin needs")
        );
        let new = "TCG plugin required version 1, minimum 2\nqemu: could not load plugin";
        assert!(
            refusal(new)
                .unwrap()
                .starts_with("TCG plugin required version 1, minimum 2; qemu: could not load plugin (")
        );
        assert_eq!(refusal("cannot set up guest memory 'ram': Cannot allocate memory"), None);
    }
}
