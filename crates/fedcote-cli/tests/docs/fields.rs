//! `docs/reference/outputs.md` explains every field that a command writes.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::root;

#[test]
fn every_field_is_explained() {
    let page = fs::read_to_string(root().join("docs/reference/outputs.md")).expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &str| -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_fedcote"))
            .args(arguments.split(' '))
            .current_dir(folder.path())
            .output()
            .expect("the command starts");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {complaint}");
        String::from_utf8(output.stdout).expect("text")
    };
    let problem = r#"{"selected": 4, "clients": [
        {"labels": [3, 0], "failure": 0.1, "selection": 0.5},
        {"labels": [0, 3], "failure": 0.5, "selection": 0.5}]}"#;
    fs::write(folder.path().join("problem.json"), problem).expect("written");
    let small = "--set rounds=2 --set data.set=synthetic --set data.samples=400 --set network.mobility=walk";
    let summary = run(&format!("run --out out --seeds 1 --json {small}"));
    let out = folder.path().join("out");
    let file = |name: &str| fs::read_to_string(out.join(name)).expect(name);
    let line = |text: String| text.lines().last().expect("a line").to_owned();

    for (section, document) in [
        ("summary.json", summary),
        ("summary.json", file("summary.json")),
        ("metrics.jsonl", line(file("fedcote/1/metrics.jsonl"))),
        ("finished.json", file("fedcote/1/finished.json")),
        ("clients.json", file("fedcote/1/clients.json")),
        ("select and evaluate", run("select problem.json --json")),
        ("select and evaluate", run("evaluate problem.json --json")),
        ("network", run("network --json")),
        ("data", run("data check mnist --json")),
        ("data", run("data list --json")),
    ] {
        let mut names = BTreeSet::new();
        names_in(&serde_json::from_str(&document).expect("JSON"), &mut names);
        explained(&page, section, &names);
    }
    for (section, table) in [
        ("summary.csv", file("summary.csv")),
        ("select and evaluate", run("select problem.json --csv")),
    ] {
        let header = table.lines().next().expect("a header");
        explained(&page, section, &header.split(',').map(str::to_owned).collect());
    }
    let mut files = BTreeSet::new();
    for inside in [out.clone(), out.join("fedcote/1")] {
        for entry in fs::read_dir(inside).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                files.insert(path.file_name().expect("a name").to_string_lossy().into_owned());
            }
        }
    }
    explained(&page, "Run folders", &files);
}

/// All names of fields, at any depth. Checksums are by file name.
fn names_in(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                if name != "checksums" {
                    names_in(value, names);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names_in(value, names)),
        _ => {}
    }
}

fn explained(page: &str, section: &str, names: &BTreeSet<String>) {
    let heading = |line: &&str| {
        line.starts_with("## ") && line.replace('`', "").trim_start_matches("## ") == section
    };
    let inside: String = page
        .lines()
        .skip_while(|line| !heading(line))
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with('|'))
        .collect();
    for name in names {
        assert!(
            inside.contains(&format!("`{name}`")),
            "docs/reference/outputs.md, section {section}, does not explain `{name}`"
        );
    }
}
