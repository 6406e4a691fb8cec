use super::*;

fn table() -> Table {
    let spread = |mean, std| Cell::Spread(Spread { mean, std });
    let row = |name: &str, cells: Vec<Cell>, apart| Row { name: name.into(), cells, apart };
    Table {
        title: "T".into(),
        corner: "scheme".into(),
        columns: vec![
            Column::new("accuracy (%)", Better::Higher, Digits::Percent(2)),
            Column::new("loss", Better::Lower, Digits::Fixed(3)),
            Column::new("χ²", Better::Lower, Digits::Significant(2)),
            Column::new("note", Better::Neither, Digits::Fixed(0)),
        ],
        rows: vec![
            row(
                "a_b|<i>",
                vec![
                    spread(0.80891, 0.0361),
                    Cell::Number(0.5),
                    Cell::Number(1.234e-7),
                    Cell::Empty,
                ],
                false,
            ),
            row(
                "c, \"d\"",
                vec![
                    spread(0.80894, 0.01),
                    Cell::Number(0.25),
                    Cell::Number(0.0213),
                    Cell::Text("50 %".into()),
                ],
                false,
            ),
            row("ideal", vec![spread(0.99, 0.0), Cell::Number(0.01), Cell::Number(0.0)], true),
        ],
    }
}

#[test]
fn markdown_marks_ties_and_leaves_the_ideal_apart() {
    assert_eq!(
        table().markdown(),
        "| scheme | accuracy (%) | loss | χ² | note |\n|---|---:|---:|---:|---:|\n\
         | a_b\\|&lt;i> | **80.89 ± 3.61** | 0.500 | **1.2e-7** | – |\n\
         | c, \"d\" | **80.89 ± 1.00** | **0.250** | 0.021 | 50 % |\n\
         | ideal | 99.00 ± 0.00 | 0.010 | 0 | – |\n"
    );
}

#[test]
fn latex_escapes() {
    let latex = table().latex();
    assert!(
        latex.contains(
            "a\\_b|<i> & \\textbf{80.89 $\\pm$ 3.61} & 0.500 & \\textbf{1.2e-7} & -- \\\\"
        ),
        "{latex}"
    );
    assert!(latex.contains("accuracy (\\%) & loss & $\\chi$$^2$ & note"), "{latex}");
}

#[test]
fn csv_and_json_keep_full_precision() {
    let lines: Vec<String> = table().csv().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "scheme,accuracy (%),accuracy (%) deviation,loss,χ²,note");
    assert_eq!(lines[1], "a_b|<i>,0.80891,0.0361,0.5,0.0000001234,");
    assert_eq!(lines[2], "\"c, \"\"d\"\"\",0.80894,0.01,0.25,0.0213,50 %");
    let json = table().json();
    assert_eq!(json["rows"][0]["cells"][0]["mean"], 0.80891);
    assert_eq!(json["rows"][1]["cells"][1]["bold"], true);
    assert_eq!(json["rows"][2]["cells"][1]["bold"], false);
}

#[test]
fn html_is_well_formed_and_hostile_names_are_text() {
    let mut table = table();
    table.rows[0].name = "<script>alert(1)</script>".into();
    let html = table.html();
    roxmltree::Document::parse(&html).unwrap();
    assert!(!html.contains("<script"));
    assert!(html.contains("<td><strong>80.89 ± 1.00</strong></td>"));
}
