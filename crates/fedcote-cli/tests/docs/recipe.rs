//! `docs/guide/adding-a-scheme.md`, followed literally: its blocks are applied to a copy of the simulator's sources, which
//! must then compile, pass its tests and know the new part.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::pages::Page;
use crate::root;

/// What holds when the recipe was followed, in a file of tests that the copy gets.
const CHECKS: &str = r#"
use fedcote_sim::{Scenario, scheme};

fn resolve(tails: f64) -> Result<toml::Table, String> {
    let text = format!("schemes = ['x']\n[scheme.x]\naggregation = 'winsorised'\ntails = {tails}\n");
    let scenario = Scenario::parse("x.toml", &text, &[], ".".as_ref()).map_err(|e| e.to_string())?;
    Ok(scenario.schemes.resolve("x").unwrap().table())
}

#[test]
fn the_parameter_is_read_written_out_checked_and_described() {
    assert_eq!(resolve(0.2).unwrap()["tails"].as_float(), Some(0.2));
    assert_eq!(resolve(0.7).unwrap_err(), "x.toml:4: scheme.x.tails: must be from 0 to 0.49");
    let described = scheme::parameters().into_iter().find(|p| p.key == "tails").unwrap();
    assert_eq!(described.default.as_deref(), Some("0.1"));
    assert_eq!(described.range.as_deref(), Some("from 0 to 0.49"));
}
"#;

#[test]
fn a_scheme_is_added_as_the_guide_says() {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recipe");
    let _ = fs::remove_dir_all(&copy);
    for part in
        ["crates/fedcote-sim", "scenarios", "fuzz"].iter().filter(|part| root().join(part).exists())
    {
        copy_tree(&root().join(part), &copy.join(part));
    }
    fs::copy(root().join("Cargo.lock"), copy.join("Cargo.lock")).expect("copied");
    fs::write(copy.join("Cargo.toml"), manifest()).expect("written");
    let files = follow(&copy);
    // The fourth is the generated reference.
    assert!(files.len() <= 3, "more than four files for a scheme: {files:?}");
    fs::write(copy.join("crates/fedcote-sim/tests/recipe.rs"), CHECKS).expect("written");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--lib", "--test", "rounds", "--test", "recipe"])
        // Few of the features are those of the whole workspace, so nearly everything is compiled anew; that takes longer than
        // these tests do.
        .args(["--config", "profile.dev.opt-level=0"])
        .args(["--config", "profile.dev.package.\"*\".opt-level=0", "--"])
        .args([
            "winsorised",
            "named_scheme",
            "goes_on_from_what_was_saved",
            "the_parameter_is_read",
        ])
        .current_dir(copy.join("crates/fedcote-sim"))
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    for test in ["the_ends_are_pulled_in_as_by_hand", "the_parameter_is_read", "goes_on_from"] {
        assert!(told.contains(test), "{test} was run: {told}");
    }
}

/// Applies the blocks of the guide; the files that they create or change.
fn follow(copy: &Path) -> BTreeSet<String> {
    let page = Page::all().into_iter().find(|page| page.name == "docs/guide/adding-a-scheme.md");
    let mut files = BTreeSet::new();
    for block in page.expect("the guide").blocks() {
        let directive = block.directive.unwrap_or_default();
        if let Some(file) = directive.strip_prefix("create ") {
            assert!(!copy.join(file).exists(), "{}: {file} exists", block.place);
            fs::write(copy.join(file), block.text).expect("written");
            files.insert(file.to_owned());
        } else if let Some(file) = directive.strip_prefix("change ") {
            let mut text = fs::read_to_string(copy.join(file)).expect("a file of the sources");
            for hunk in block.text.split("@@\n") {
                let side = |other: char| -> String {
                    let lines = hunk.lines().filter(|line| !line.starts_with(other));
                    lines.map(|line| format!("{}\n", line.get(1..).unwrap_or(""))).collect()
                };
                let (before, after) = (side('+'), side('-'));
                let found = text.matches(&before).count();
                assert_eq!(found, 1, "{}: {file} has {found} times\n{before}", block.place);
                text = text.replace(&before, &after);
            }
            fs::write(copy.join(file), text).expect("written");
            files.insert(file.to_owned());
        }
    }
    assert!(files.len() > 1, "the guide's blocks are found");
    files
}

/// The workspace's manifest with the simulator as its only member; the other crates are those of the project.
fn manifest() -> String {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let line = |line: &str| match line {
        _ if line.starts_with("members") => "members = [\"crates/fedcote-sim\"]\n".to_owned(),
        _ if line.starts_with("default-members") => String::new(),
        _ if line.starts_with("fedcote-sim ") => format!("{line}\n"),
        _ => line.replace("path = \"", &format!("path = \"{}/", root().display())) + "\n",
    };
    text.lines().map(line).collect()
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}
