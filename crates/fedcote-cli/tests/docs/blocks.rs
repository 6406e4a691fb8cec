//! Every block of code in the documentation is run or checked, page by page, in a folder of its own.
//!
//! | language | what is done |
//! |---|---|
//! | `sh` | run; the page goes on with the files it leaves |
//! | `console` | the lines after `$ ` are run, what they print must be what the page shows; a line `…` stands for any lines |
//! | `toml` | a scenario: the program reads it; a first line `# NAME.toml` keeps it under that name |
//! | `json`, `csv` | JSON is read; `<!-- test: file NAME -->` before the block keeps it under that name |
//! | `rust`, `python` | tested elsewhere: as documentation of `fedcote-sim`, and by `python/tests/test_docs.py` |
//! | after `<!-- test: create FILE -->`, `<!-- test: change FILE -->` | applied to a copy of the sources by `recipe.rs` |
//! | `text` | nothing |
//!
//! Two remarks before a block change that, and are bounded in number: `<!-- test: skip, REASON -->`, and
//! `<!-- test: append WORDS -->`, which adds words to every `fedcote run` of the block. What `cargo`, `pip` and `python`
//! are asked to do is not done, but files, packages and chores that they name must exist; of `fedcote paper` only the
//! flags are checked. On pages of measured results, runs are only asked for their configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::commands::help;
use crate::pages::{Block, Page};
use crate::root;

/// How many blocks may be skipped at most.
const SKIPPED: usize = 7;

#[test]
fn every_block_runs() {
    let mut skipped = Vec::new();
    let mut failed = Vec::new();
    let mut count = 0;
    for page in Page::all() {
        let folder = tempfile::tempdir().expect("a folder");
        let desk = Desk::new(folder.path());
        for block in page.blocks() {
            count += 1;
            let directive = block.directive.as_deref().unwrap_or("");
            if let Some(reason) = directive.strip_prefix("skip") {
                skipped.push(format!("{}{reason}", block.place));
            } else if let Err(reason) = desk.check(&block, directive) {
                failed.push(format!("{}: {reason}", block.place));
                // What follows on the page may need what is missing now.
                break;
            }
        }
    }
    println!("{count} blocks; skipped:\n{}", skipped.join("\n"));
    assert!(failed.is_empty(), "{} blocks fail:\n{}", failed.len(), failed.join("\n\n"));
    assert!(skipped.len() <= SKIPPED, "too many skipped blocks");
    assert!(count > 40, "only {count} blocks found");
}

/// Commands within lines name flags that exist.
#[test]
fn flags_in_the_text_exist() {
    let mut wrong = Vec::new();
    for page in Page::all() {
        if page.name == "CHANGELOG.md" {
            continue;
        }
        let prose: String = {
            let mut inside = false;
            let lines = page.text.lines().filter(|line| {
                let fence = line.trim_start().starts_with("```");
                inside ^= fence;
                !fence && !inside
            });
            lines.map(|line| line.to_owned() + " ").collect()
        };
        for code in prose.split('`').skip(1).step_by(2) {
            let Some(command) = code.strip_prefix("fedcote ") else { continue };
            let words: Vec<&str> = command.split_whitespace().collect();
            let depth = if words[0] == "data" && words.len() > 1 { 2 } else { 1 };
            if words[0].starts_with('-') || words[0] == "help" {
                continue;
            }
            let help = help(&words[..depth]);
            for flag in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                let flag = flag.split('=').next().expect("a flag");
                if !help.contains(flag) {
                    wrong.push(format!("{}: `{code}`: no {flag}", page.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A folder to work in, with `fedcote` on the path.
struct Desk<'a> {
    folder: &'a Path,
    path: String,
}

impl<'a> Desk<'a> {
    fn new(folder: &'a Path) -> Self {
        let programs = folder.join(".bin");
        fs::create_dir(&programs).expect("a folder");
        let wrapper = format!(
            "#!/bin/sh\nif [ \"$1\" = run ]; then exec {0} \"$@\" $FEDCOTE_APPEND; fi\nexec {0} \"$@\"\n",
            env!("CARGO_BIN_EXE_fedcote")
        );
        let file = programs.join("fedcote");
        fs::write(&file, wrapper).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
        let path = std::env::var("PATH").unwrap_or_default();
        Self { folder, path: format!("{}:{path}", programs.display()) }
    }

    fn check(&self, block: &Block, directive: &str) -> Result<(), String> {
        let Block { text, language, .. } = block;
        if let Some(name) = directive.strip_prefix("file ") {
            fs::write(self.folder.join(name), text).map_err(|error| error.to_string())?;
        }
        let measured = block.place.starts_with("docs/results/");
        let usual = if measured { "--print-config" } else { "" };
        let append = directive.strip_prefix("append ").unwrap_or(usual);
        match language.as_str() {
            "sh" => {
                commands(text).iter().try_for_each(|command| self.run(command, append).map(drop))
            }
            "console" => self.console(text, append),
            "toml" => self.scenario(text),
            "json" => serde_json::from_str::<serde_json::Value>(text)
                .map(drop)
                .map_err(|error| error.to_string()),
            "csv" | "text" | "python" => Ok(()),
            rust if rust.starts_with("rust") => Ok(()),
            "diff" if directive.starts_with("change ") => Ok(()),
            "" => Err("say which language the block is (`text` if none)".into()),
            other => Err(format!("`{other}` blocks are not tested; use another language")),
        }
    }

    /// Runs a command; what it prints.
    fn run(&self, command: &str, append: &str) -> Result<String, String> {
        let Some(command) = runnable(command)? else { return Ok(String::new()) };
        let output = Command::new("sh")
            .args(["-euc", &command])
            .current_dir(self.folder)
            .env("PATH", &self.path)
            .env("COLUMNS", "100")
            .env("FEDCOTE_APPEND", append)
            .output()
            .map_err(|error| error.to_string())?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("{command}\n{} {complaint}", output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn console(&self, text: &str, append: &str) -> Result<(), String> {
        for (command, shown) in sessions(text) {
            let printed = self.run(&command, append)?;
            let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
            let shown: Vec<&str> = shown.iter().map(|line| line.trim_end()).collect();
            if !alike(&shown, &printed) {
                return Err(format!("{command}\nprints\n{}", printed.join("\n")));
            }
        }
        Ok(())
    }

    fn scenario(&self, text: &str) -> Result<(), String> {
        let first = text.lines().next().unwrap_or_default();
        let name = first.strip_prefix("# ").filter(|name| {
            name.ends_with(".toml") && name.chars().all(|c| c.is_alphanumeric() || "-.".contains(c))
        });
        let name = name.unwrap_or("scenario-of-the-page.toml");
        fs::write(self.folder.join(name), text).map_err(|error| error.to_string())?;
        self.run(&format!("fedcote run {name} --print-config"), "").map(drop)
    }
}

/// Commands of a block, one a line unless a quote or a backslash leads on.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        open += line;
        let quotes = open.chars().filter(|&c| c == '\'').count();
        if line.ends_with('\\') || quotes % 2 == 1 {
            open.push('\n');
        } else {
            let command = std::mem::take(&mut open);
            if !command.trim().is_empty() && !command.trim().starts_with('#') {
                found.push(command);
            }
        }
    }
    assert!(open.is_empty(), "the block ends within a command: {open}");
    found
}

/// Commands after `$ ` and what the page shows of their output.
fn sessions(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), Vec::new())),
            (None, Some((_, shown))) => shown.push(line.to_owned()),
            (None, None) => panic!("a console block starts with `$ `: {text}"),
        }
    }
    found
}

/// Whether a page shows what was printed; `…` alone in a line stands for any lines.
fn alike(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => (0..=printed.len()).any(|skip| alike(rest, &printed[skip..])),
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| first == line && alike(rest, others)),
    }
}

/// The command to run, or nothing for one that only must make sense.
fn runnable(command: &str) -> Result<Option<String>, String> {
    let comment = command.find(" #").unwrap_or(command.len());
    let words: Vec<&str> = command[..comment].split_whitespace().collect();
    let set = words.iter().take_while(|word| word.contains('=') && !word.starts_with('-')).count();
    let words = &words[set..];
    let exists = |path: String| {
        if root().join(&path).exists() { Ok(None) } else { Err(format!("there is no {path}")) }
    };
    let after = |flag: &str| {
        let at = words.iter().position(|word| *word == flag)?;
        words.get(at + 1).copied()
    };
    match words {
        ["cargo", "xtask", chore @ ..] => {
            let known = fs::read_to_string(root().join("xtask/src/main.rs")).expect("the chores");
            let name: Vec<&str> = chore
                .iter()
                .copied()
                .filter(|word| word.chars().all(|c| c.is_ascii_lowercase()))
                .collect();
            if known.contains(&format!("\n  {}", name.join(" "))) {
                Ok(None)
            } else {
                Err(format!("no chore {chore:?}"))
            }
        }
        ["cargo", "run", "--release", "--", rest @ ..] => {
            Ok(Some(format!("fedcote {}", rest.join(" "))))
        }
        ["cargo", "install", "--path", path, ..] => exists(format!("{path}/Cargo.toml")),
        ["cargo", verb @ ("run" | "test" | "bench"), ..] => {
            let package = after("-p").ok_or("which package?")?;
            let (folder, name) = match (after("--example"), after("--test"), after("--bench")) {
                (Some(name), ..) => ("examples", name),
                (_, Some(name), _) => ("tests", name),
                (.., Some(name)) => ("benches", name),
                _ if *verb == "test" => return exists(format!("crates/{package}/Cargo.toml")),
                _ => return Err("which target?".into()),
            };
            exists(format!("crates/{package}/{folder}/{name}.rs"))
        }
        ["pip", "install", package, ..]
            if [".", ".[flower]", ".[torch]"].contains(&package.trim_matches('\'')) =>
        {
            exists("pyproject.toml".to_owned())
        }
        ["fedcote", "paper", flags @ ..] if !flags.contains(&"--list") => {
            let help = help(&["paper"]);
            let unknown = flags.iter().find(|flag| flag.starts_with("--") && !help.contains(*flag));
            unknown.map_or(Ok(None), |flag| Err(format!("fedcote paper has no {flag}")))
        }
        ["python", file, ..] => exists((*file).to_owned()),
        _ => Ok(Some(command.to_owned())),
    }
}
