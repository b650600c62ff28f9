//! Where `make install` and `make toolkit` put what this library runs: `libexec/hcomm`, beside the folder of the library or program.
#![forbid(unsafe_code)]

use std::path::PathBuf;

/// Folders that may have it, nearest first. None without /proc.
pub fn folders() -> Vec<PathBuf> {
    let Some(own) = own_file() else { return Vec::new() };
    own.ancestors().skip(1).take(LEVELS).map(|folder| folder.join("libexec/hcomm")).collect()
}

/// Folders from that of the file up to the prefix: `lib/x86_64-linux-gnu` has one more.
const LEVELS: usize = 4;

/// The file that this code was loaded from: a program, or libhcomm_sim.
fn own_file() -> Option<PathBuf> {
    let addr = own_file as *const () as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| path_of(line, addr))
}

/// Path of a line of the list of mappings, if it has the address.
fn path_of(line: &str, addr: u64) -> Option<PathBuf> {
    let (start, rest) = line.split_once('-')?;
    let (end, rest) = rest.split_once(' ')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let path = &rest[rest.find('/')?..];
    (number(start)?..number(end)?).contains(&addr).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_file_is_this_program() {
        assert_eq!(own_file(), std::env::current_exe().ok());
        let line = "7f00-8000 r-xp 00001000 fd:01 77    /opt/a b/lib/libhcomm_sim.so.0";
        assert_eq!(path_of(line, 0x7f00), Some("/opt/a b/lib/libhcomm_sim.so.0".into()));
        assert_eq!(path_of(line, 0x8000), None);
        assert_eq!(path_of("7f00-8000 rw-p 00000000 00:00 0", 0x7f00), None);
    }
}
