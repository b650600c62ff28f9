//! Processes that a test has started, itself or by others.

/// Processes that have `mark` in their environment, but for those that have ended and only wait to be reaped.
///
/// # Panics
/// Without /proc.
pub fn marked(mark: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let processes =
        entries.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()));
    let has_mark = |environ: &[u8]| environ.windows(mark.len()).any(|window| window == mark.as_bytes());
    let found = processes.filter(|entry| std::fs::read(entry.path().join("environ")).is_ok_and(|text| has_mark(&text)));
    found
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| !stat.contains(") Z "))
        .collect()
}
