//! The chart of docs/performance.svg: what every reader of the file can show.

#[path = "../benches/performance/chart.rs"]
mod chart;

/// Value of an attribute of a line.
fn attribute(line: &str, name: &str) -> Option<f64> {
    line.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0.parse().ok()
}

/// Case 154.
#[test]
fn numbers_stand_alone_the_picture_is_filled_and_there_are_colours_for_dark_pages() {
    let rows = serde_json::json!([
        { "id": "copy_eager", "value": 73.0 }, { "id": "copy_batch", "value": 68.2 }, { "id": "copy_16gib", "value": 43.0 }
    ]);
    let svg = chart::svg(&rows);
    let view = svg.split_once("viewBox=\"0 0 ").unwrap().1.split_once('"').unwrap().0;
    let (width, height) = view.split_once(' ').unwrap();
    let (width, height): (f64, f64) = (width.parse().unwrap(), height.parse().unwrap());

    let (mut right, mut bottom) = (0.0_f64, 0.0_f64);
    for line in svg.lines().filter(|line| line.starts_with("<rect class") && !line.contains("ground")) {
        right = right.max(attribute(line, "x").unwrap() + attribute(line, "width").unwrap());
        bottom = bottom.max(attribute(line, "y").unwrap() + attribute(line, "height").unwrap());
    }
    assert!(right > 0.9 * width && right + 36.0 < width, "bars end at {right} of {width}");
    assert!(bottom > 0.9 * height && bottom < height, "bars end at {bottom} of {height}");

    // Readers differ in what they make of white space between pieces of one text.
    assert!(!svg.contains("<tspan"), "{svg}");
    for number in ["1307", "438", "1193", "73", "68", "43", "49", "46"] {
        assert_eq!(svg.matches(&format!("\">{number}</text>")).count(), 1, "{number}: {svg}");
    }
    assert!(svg.contains("@media (prefers-color-scheme: dark) {\n.ground { fill: #"), "{svg}");
}

/// Case 154.
/// The file is the chart of its own numbers: it was not edited by hand.
#[test]
fn file_is_what_the_code_makes_of_its_numbers() {
    let file = std::fs::read_to_string(hcomm_testkit::root().join("docs/performance.svg")).unwrap();
    let lines: Vec<_> = file.lines().collect();
    let ours = lines.windows(2).filter(|pair| pair[0].contains("class=\"ours\"") && !pair[0].contains("y=\"58\""));
    let numbers: Vec<f64> =
        ours.map(|pair| pair[1].split_once("\">").unwrap().1.split_once('<').unwrap().0.parse().unwrap()).collect();
    let ids = ["copy_eager", "copy_batch", "copy_16gib"];
    assert_eq!(numbers.len(), ids.len(), "{file}");
    let rows = ids.iter().zip(&numbers).map(|(id, value)| serde_json::json!({ "id": id, "value": value }));
    assert_eq!(chart::svg(&rows.collect::<Vec<_>>().into()), file);
}
