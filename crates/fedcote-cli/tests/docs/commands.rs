//! `docs/reference/commands.md`: the help of every command.

use std::process::Command;

use crate::generated;

#[test]
fn the_command_reference_is_up_to_date() {
    let mut text = String::from(
        "# Commands\n\n\
         What `--help` prints, written by `cargo xtask docs`.\n\n\
         Every command ends with status 0 when it did what was asked, 1 when the work failed (a full disk, a run that \
         cannot\n\
         go on), 2 when the request was wrong (a bad file, flag or value). Then one line on standard error says what, \
         where,\n\
         and what to do, and standard output stays empty. With `--json`, standard output is exactly one JSON \
         document.\n\
         An interrupted `fedcote run` ends with status 3 and says how to resume.\n",
    );
    section(&[], &mut text);
    generated("docs/reference/commands.md", &text);
}

fn section(words: &[&str], text: &mut String) {
    let help = help(words);
    let name = [&["fedcote"], words].concat().join(" ");
    *text += &format!("\n## `{name}`\n\n```text\n{}```\n", help.trim_end().to_owned() + "\n");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in commands.take_while(|line| !line.is_empty()) {
        // A name stands two blanks in, the rest of a long description farther.
        let Some(name) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else {
            continue;
        };
        let name = name.split(' ').next().expect("a name");
        if name != "help" {
            section(&[words, &[name]].concat(), text);
        }
    }
}

/// What `fedcote WORDS --help` prints, a hundred columns wide.
pub fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fedcote"))
        .args(words)
        .arg("--help")
        .env("COLUMNS", "100")
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "fedcote {words:?} --help fails");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
