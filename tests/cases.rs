//! docs/cases.md names tests that exist, and has every row.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Rows of the case log. The numbers between were dropped from it.
const ROWS: [u32; 58] = [
    1, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 20, 21, 22, 24, 25, 26, 29, 30, 31, 32, 33, 34, 36, 37, 38,
    39, 40, 41, 42, 43, 44, 45, 46, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68,
];

/// Number of a row and the cell of its tests.
fn rows(text: &str) -> BTreeMap<u32, &str> {
    let cells = text.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    cells.filter_map(|cells| Some((cells.get(1)?.parse().ok()?, *cells.get(3)?))).collect()
}

#[test]
fn every_row_is_there_and_every_test_that_it_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/cases.md")).unwrap();
    let rows = rows(&text);
    assert_eq!(rows.keys().copied().collect::<Vec<_>>(), ROWS);
    for (row, tests) in rows {
        let named: Vec<_> = tests.split('`').skip(1).step_by(2).filter_map(|name| name.split_once("::")).collect();
        assert!(!named.is_empty() || tests.contains("not held:") || tests.contains("does not apply:"), "row {row}");
        for (file, test) in named {
            let source =
                fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("row {row}, {file}: {error}"));
            assert!(source.contains(&format!("fn {test}(")), "row {row}: {file} has no test {test}");
        }
    }
}
