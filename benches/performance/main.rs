//! `make bench`: measures everything that docs/performance.md explains, and prints one table.
//!
//! The table goes into docs/performance.md, its most important rows into README.md, and the chart docs/performance.svg is
//! made from its JSON, which `BENCH_JSON=path` writes too.

mod chart;
mod checks;
mod counts;
mod footprint;
mod host_counts;
mod latency;
mod row;
mod schedules;
mod sizes;
mod table;
mod throughput;
mod trace;

use std::error::Error;
use std::fs;

fn main() -> Result<(), Box<dyn Error>> {
    if host_counts::run_watched()? {
        return Ok(());
    }
    // First, while this process is small.
    let mut rows = footprint::measure()?;
    rows.extend(sizes::measure(&host_stub::loader::find()?));
    rows.extend(counts::measure()?);
    rows.extend(counts::measure_sync()?);
    rows.extend(counts::measure_channels()?);
    rows.extend(host_counts::measure());
    rows.extend(latency::measure()?);
    rows.extend(throughput::measure()?);
    rows.extend(trace::measure()?);
    rows.extend(checks::measure()?);
    rows.extend(schedules::measure()?);

    let lines = table::lines(&row::targets(), &rows);
    let json = serde_json::to_value(&lines)?;
    if let Some(path) = std::env::var_os("BENCH_JSON") {
        fs::write(path, serde_json::to_string_pretty(&json)? + "\n")?;
    }
    // What is measured to be compared changes no file.
    if std::env::var_os("BENCH_KEEP_DOCS").is_some() {
        println!("\n{}\n{}", table::text(&lines), table::machine());
        return Ok(());
    }
    let root = hcomm_testkit::root();
    fs::write(root.join("docs/performance.svg"), chart::svg(&json))?;
    let machine = table::machine();
    table::insert(&root.join("docs/performance.md"), &format!("{}\n{machine}", table::text(&lines)))?;
    table::insert(&root.join("README.md"), &format!("{}\n{machine}", table::text(&table::short(&lines))))?;
    println!("\n{}\n{machine}", table::text(&lines));
    Ok(())
}
