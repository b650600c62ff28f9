//! Unit tests of names and formats. tests/trace.rs runs devices.

use std::path::Path;

use super::file::{BadTraceFile, TraceFile, TraceFormat};
use super::json::quoted;

/// Case 282.
#[test]
fn extension_says_the_format_and_another_one_is_refused() {
    let format = |name: &str| TraceFile::new(Path::new(name)).map(|file| file.format());
    for (name, expected) in
        [("t.json", TraceFormat::Json), ("a.b/t.HTML", TraceFormat::Html), ("/x/t.txt", TraceFormat::Text)]
    {
        assert_eq!(format(name), Ok(expected), "{name}");
    }
    for name in ["t", "t.svg", "json", ".json", "t.json.gz", ""] {
        assert_eq!(format(name), Err(BadTraceFile { path: name.into() }), "{name}");
    }
    let text = format("t.svg").unwrap_err().to_string();
    assert_eq!(text, "the trace file \"t.svg\" must end in .json (for ui.perfetto.dev), .html (for a browser) or .txt");
}

#[test]
fn name_may_hold_the_number_of_the_process() {
    let file = TraceFile::new(Path::new("t-%p.json")).unwrap();
    assert_eq!(file.path(), Path::new(&format!("t-{}.json", std::process::id())));
}

#[test]
fn text_of_a_user_ends_neither_a_string_nor_a_script() {
    assert_eq!(quoted("a\"b\\c\n</script>"), r#""a\"b\\c\u000a\u003c/script>""#);
    assert_eq!(serde_json::from_str::<String>(&quoted("\u{1f}\"</é")).unwrap(), "\u{1f}\"</é");
}
