//! Exact counts and sizes of the release image stay within the limits of docs/performance.toml. Times are never asserted.

#[path = "../benches/performance/counts.rs"]
mod counts;
#[path = "../benches/performance/row.rs"]
mod row;
#[path = "../benches/performance/sizes.rs"]
mod sizes;

/// Case 167.
#[test]
fn counts_and_sizes_are_within_their_limits() {
    let image = host_stub::loader::find().unwrap();
    let mut rows = sizes::measure(&image);
    rows.extend(counts::measure().unwrap());
    rows.extend(counts::measure_sync().unwrap());
    rows.extend(counts::measure_channels().unwrap());

    let mut over = Vec::new();
    for target in row::targets() {
        let Some(limit) = target.limit else { continue };
        let row = rows.iter().find(|row| row.id == target.id);
        let row = row.unwrap_or_else(|| panic!("{} has a limit and is not measured", target.id));
        println!("{:<20} {:>10.2} {}, target {:?}, limit {limit}", row.id, row.value, target.unit, target.target);
        if !target.holds(row.value) {
            over.push(format!("{} ({}): {} {}, limit {limit}", target.id, target.what, row.value, target.unit));
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}

#[test]
fn counts_are_the_same_every_time() {
    let counts = || counts::measure_copies().unwrap();
    assert_eq!(counts(), counts());
}
