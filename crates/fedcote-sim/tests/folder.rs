//! The format of run folders: what earlier versions wrote, what is damaged, what is still being written.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use fedcote_sim::comparison::RunId;
use fedcote_sim::folder::{
    Clients, Finished, Line, Lock, Recorded, Rounds, ScenarioFile, State, Tail, found, last_round,
    list, read_summary, summarise,
};
use fedcote_sim::summary::{Spread, Summary};
use fedcote_sim::{Error, Scenario};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name)
}

/// A copy of a recorded folder, to be changed.
fn copy(name: &str) -> tempfile::TempDir {
    fn all(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => all(&entry.path(), &to),
                false => drop(fs::copy(entry.path(), to).unwrap()),
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    all(&recorded(name), folder.path());
    folder
}

fn line(round: u32) -> String {
    format!("{{\"round\":{round},\"selected\":[[0,1]],\"arrived\":[],\"attempts\":1}}\n")
}

fn lines(rounds: impl IntoIterator<Item = u32>) -> String {
    rounds.into_iter().map(line).collect()
}

#[test]
fn every_file_of_an_earlier_version_is_written_again_byte_for_byte() {
    for folder in ["sound", "diverged"].map(recorded) {
        for run in found(&folder).unwrap() {
            let run = run.folder(&folder);
            let text = |name: &str| fs::read_to_string(run.join(name)).unwrap();
            let metrics: String = text("metrics.jsonl")
                .lines()
                .map(|line| Line::parse(line.as_bytes(), 0).unwrap())
                .map(|line| serde_json::to_string(&line).unwrap() + "\n")
                .collect();
            assert_eq!(metrics, text("metrics.jsonl"));
            let clients = Clients::read(&run).unwrap().unwrap();
            assert_eq!(serde_json::to_string(&clients).unwrap(), text("clients.json"));
            let finished = Finished::read(&run).unwrap().unwrap();
            assert_eq!(serde_json::to_string(&finished).unwrap(), text("finished.json"));
        }
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let summary = read_summary(&folder).unwrap().unwrap();
        // Since then the target has been a key, and costs have columns.
        let since = text("summary.json").replace("rounds_to_90", "rounds_to");
        let since = since.replace("\"command\"", "\"target_accuracy\": 0.9,\n  \"command\"");
        assert_eq!(serde_json::to_string_pretty(&summary).unwrap(), since);
        let (now, before) = (summary.to_csv(), text("summary.csv").replace("to_90", "to"));
        let names = |text: &str| -> Vec<String> {
            text.lines().next().unwrap().split(',').map(str::to_owned).collect()
        };
        for (now_line, before_line) in now.lines().zip(before.lines()) {
            let now_cells: Vec<&str> = now_line.split(',').collect();
            for (name, cell) in names(&before).iter().zip(before_line.split(',')) {
                let at = names(&now).iter().position(|other| other == name).expect("kept");
                assert_eq!(now_cells[at], cell, "{name}");
            }
        }
        let file = ScenarioFile::read(&folder).unwrap().unwrap();
        // Its keys have moved since: it can be shown, not resumed.
        let error = Scenario::parse("scenario.toml", &file.text, &[], &folder).unwrap_err();
        assert!(error.to_string().contains("is now server.exploration"), "{error}");
        let moved = file.text.replace("exploration = 0.0\n", "");
        let scenario = Scenario::parse("scenario.toml", &moved, &[], &folder).unwrap();
        assert_eq!(file.general.as_ref(), Some(&scenario.general));
        let out = tempfile::tempdir().unwrap();
        ScenarioFile::write(out.path(), &scenario, file.command.as_deref().unwrap()).unwrap();
        let written = fs::read_to_string(out.path().join("scenario.toml")).unwrap();
        assert_eq!(ScenarioFile::parse(&written).general, file.general);
        assert_eq!(ScenarioFile::parse(&written).command, file.command);
    }
}

#[test]
fn whatever_is_there_is_summed_up_as_the_comparison_did() {
    for name in ["sound", "diverged"] {
        let (summary, overview) = summarise(&recorded(name)).unwrap();
        assert_eq!(overview.missing().count(), 0);
        assert_eq!(without_differences(summary), read_summary(&recorded(name)).unwrap().unwrap());
    }
    // Without `scenario.toml`, as in the folders of `fedcote paper`, the runs' own configurations say as much.
    let folder = copy("sound");
    fs::remove_file(folder.path().join("scenario.toml")).unwrap();
    let mut wanted = read_summary(folder.path()).unwrap().unwrap();
    wanted.command.clear();
    assert_eq!(without_differences(summarise(folder.path()).unwrap().0), wanted);
}

/// The version of the recorded folders did not pair seeds.
fn without_differences(mut summary: Summary) -> Summary {
    summary.against = None;
    for scheme in &mut summary.schemes {
        scheme.differences.clear();
        scheme.leads.clear();
    }
    summary
}

#[test]
fn the_state_of_every_run_is_told() {
    let states = |out: &Path| -> Vec<(String, State, u32)> {
        let told = list(out).unwrap().into_iter();
        told.map(|s| (format!("{}/{}", s.run.scheme, s.run.seed), s.state, s.round)).collect()
    };
    assert_eq!(states(&recorded("diverged")), [("fedavg/1".into(), State::Diverged, 1)]);
    let folder = copy("sound");
    let out = folder.path();
    let remove = |name: &str| fs::remove_file(out.join(name)).unwrap();
    // Killed while it wrote round 3.
    remove("fedavg/2/finished.json");
    let metrics = fs::read_to_string(out.join("fedavg/2/metrics.jsonl")).unwrap();
    let two: String = metrics.split_inclusive('\n').take(2).collect();
    fs::write(out.join("fedavg/2/metrics.jsonl"), two + "{\"round\":3,\"sel").unwrap();
    fs::remove_dir_all(out.join("fedcote/1")).unwrap();
    fs::write(out.join("fedcote/2/finished.json"), "{").unwrap();
    // Whatever else is there is not a run.
    fs::create_dir_all(out.join("fedavg/notes")).unwrap();
    fs::create_dir_all(out.join("export")).unwrap();
    let told = states(out);
    let wanted = [
        ("fedavg/1", State::Finished, 4),
        ("fedcote/1", State::Waiting, 0),
        ("fedavg/2", State::Interrupted, 2),
        ("fedcote/2", State::Damaged, 0),
    ];
    assert_eq!(told, wanted.map(|(name, state, round)| (name.to_owned(), state, round)));
    // A run is under way while a command has its lock, whatever else commands do in the folder.
    let lock = Lock::take(out).unwrap();
    assert_eq!((states(out)[2].1, states(out)[1].1), (State::Interrupted, State::Waiting));
    drop(lock);
    let lock = Lock::take(&out.join("fedcote/1")).unwrap();
    assert_eq!((states(out)[2].1, states(out)[1].1), (State::Interrupted, State::Running));
    drop(lock);
    // A run that the scenario does not name comes last.
    fs::create_dir_all(out.join("mine/7")).unwrap();
    fs::write(out.join("mine/7/metrics.jsonl"), lines(1..=3)).unwrap();
    assert_eq!(states(out)[4], ("mine/7".to_owned(), State::Interrupted, 3));

    let error = summarise(out).unwrap_err().to_string();
    assert!(error.contains("fedcote/2/finished.json: is damaged; remove "), "{error}");
    fs::remove_dir_all(out.join("fedcote/2")).unwrap();
    let (summary, overview) = summarise(out).unwrap();
    let missing: Vec<_> = overview.missing().map(|standing| standing.run.clone()).collect();
    let id = |scheme: &str, seed| RunId { scheme: scheme.to_owned(), seed };
    let wanted = [id("fedcote", 1), id("fedavg", 2), id("fedcote", 2), id("mine", 7)];
    assert_eq!(missing, wanted);
    let schemes: Vec<_> = summary.schemes.iter().map(|s| (&*s.name, s.seeds)).collect();
    assert_eq!(schemes, [("fedavg", 2), ("mine", 1)]);
    // Only one of the two has an accuracy in the tail, the fourth round, and only one has ended.
    let fedavg = &summary.schemes[0];
    assert_eq!(fedavg.tail_accuracy.unwrap().std, 0.0);
    assert_eq!(fedavg.seconds.unwrap().std, 0.0);
}

#[test]
fn damage_is_named_by_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let read = |text: &[u8]| {
        fs::write(&path, text).unwrap();
        Rounds::read(folder.path()).map(|rounds| rounds.unwrap())
    };
    for (text, told) in [
        (lines(1..=2) + "{\"round\":oops}\n" + &line(3), ":3: expected value"),
        (lines([1, 2, 2]), ":3: round 2 after round 2"),
        (lines([0]), ":1: round 0; rounds count from 1"),
        ("\n{\"selected\":[]}\n".into(), ":2: missing field `round`"),
        (line(1).replace('}', ",\"test_accuracy\":91.0}"), ":1: test_accuracy 91 is not"),
        (line(1).replace('}', ",\"scores\":{\"f1\":\"high\"}}"), ":1: invalid type: string"),
        (line(1) + "{\"diverged_at\":\"soon\"}\n", ":2: invalid type: string"),
        (line(1) + "{\"diverged_at\":2,\"x\":1}\n", ":2: unknown field `x`"),
        // A last line without an end that is whole, and wrong.
        (line(1) + "{\"round\":1}", ":2: missing field"),
    ] {
        let error = read(text.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }) && error.is_request());
        let error = error.to_string();
        assert!(error.starts_with(&format!("{}{told}", path.display())), "{error}");
    }
    let error = read(&[line(1).as_bytes(), b"\xff\xfe"].concat()).unwrap_err().to_string();
    assert!(error.ends_with("metrics.jsonl:2: not UTF-8 text"), "{error}");
    // What is being written is not damage, even in the middle of a letter.
    for cut in [&b"{\"round\":2,\"sel"[..], b"{", b"{\"round\":2,\"scores\":{\"\xc3"] {
        assert_eq!(read(&[line(1).as_bytes(), cut].concat()).unwrap().last(), 1);
    }
    let rounds = read((line(1) + line(2).trim_end()).as_bytes()).unwrap();
    assert_eq!(rounds.last(), 2, "whole, only its end is missing");
    assert!(Rounds::read(&folder.path().join("none")).unwrap().is_none());
}

/// A report of a run whose metrics or clients had changed since used to be made of the wrong numbers.
#[test]
fn files_of_a_finished_run_are_read_as_they_were_written_or_not_at_all() {
    for (name, from, to) in [("metrics.jsonl", ":1", ":2"), ("clients.json", "0.25", "0.35")] {
        let folder = copy("sound");
        let run = folder.path().join("fedcote/1");
        assert!(Recorded::read(&run).unwrap().unwrap().finished.is_some());
        let text = fs::read_to_string(run.join(name)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(run.join(name), text.replacen(from, to, 1)).unwrap();
        let error = Recorded::read(&run).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("its checksum does not match"), "{error}");
        fs::remove_file(run.join("metrics.jsonl")).unwrap();
        let error = Recorded::read(&run).unwrap_err().to_string();
        assert!(error.contains("metrics.jsonl: is missing; remove "), "{error}");
    }
}

#[test]
fn clients_that_cannot_be_are_refused() {
    let path = Path::new("clients.json");
    let parse = |text: &str| Clients::parse(path, text.as_bytes()).map_err(|e| e.to_string());
    let clients = |client: &str| {
        format!("{{\"classes\":2,\"global_labels\":[0.5,0.5],\"clients\":[{client}]}}")
    };
    let sound = parse(&clients(r#"{"id":"a","weight":1,"failure":0.5}"#)).unwrap();
    assert_eq!((sound.clients[0].selection, sound.warnings.len()), (None, 0));
    for (text, told) in [
        (clients(r#"{"id":"a","weight":1}"#), "clients.json:1: missing field `failure`"),
        (
            clients(r#"{"id":"a","weight":1,"failure":1.5}"#),
            "clients.json: client \"a\": 1.5 is not a share between 0 and 1",
        ),
        (
            clients(r#"{"id":"a","weight":1,"failure":0,"labels":[1]}"#),
            "clients.json: client \"a\": 1 labels for 2 classes",
        ),
        (
            r#"{"classes":2,"global_labels":[1],"clients":[]}"#.into(),
            "clients.json: 1 global labels for 2 classes",
        ),
    ] {
        assert_eq!(parse(&text).unwrap_err(), told);
    }
}

/// The page serves folders that others made.
#[test]
fn no_scenario_leads_out_of_its_folder() {
    let general = |text: &str| ScenarioFile::parse(text).general;
    assert_eq!(general("rounds = 3\nschemes = [\"mine\"]").unwrap().schemes, ["mine"]);
    for scheme in ["../other", "..", "/etc", "a/b", ""] {
        assert!(general(&format!("rounds = 3\nschemes = [{scheme:?}]")).is_none(), "{scheme}");
    }
    assert!(general("schemes = [\"mine\"]").is_none() && general("rounds = ").is_none());
    let file = ScenarioFile::parse("# fedcote run\nrounds = 3\nnew = 1\n[network]\nx = 2\ny = 0.5");
    assert_eq!(file.general.as_ref().map(|general| general.rounds), Some(3), "of a later version");
    assert_eq!((file.number("network.x"), file.number("network.y")), (Some(2.0), Some(0.5)));
    assert_eq!((file.number("network.z"), file.command.as_deref()), (None, Some("fedcote run")));
}

#[test]
fn scores_of_the_task_are_kept_and_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    // Ten rounds, the tail is the last two; `f1` is reported in even rounds, `auc` once.
    let report = |round: u32, seed: f64| match round {
        3 => line(3).replace('}', ",\"scores\":{\"auc\":0.5}}"),
        _ if round.is_multiple_of(2) => {
            let f1 = (f64::from(round) + seed) / 20.0;
            line(round).replace('}', &format!(",\"scores\":{{\"f1\":{f1}}}}}"))
        }
        _ => line(round),
    };
    for seed in [1, 3] {
        let run = out.join(format!("mine/{seed}"));
        fs::create_dir_all(&run).unwrap();
        let text: String = (1..=10).map(|round| report(round, f64::from(seed))).collect();
        fs::write(run.join("metrics.jsonl"), text).unwrap();
    }
    let (summary, _) = summarise(out).unwrap();
    let [scheme] = &summary.schemes[..] else { panic!("{summary:?}") };
    assert_eq!((scheme.test_accuracy, scheme.tail_accuracy), (None, None));
    // After round 10: 11/20 and 13/20.
    let f1 = scheme.scores["f1"];
    let Spread { mean, std } = f1.last.unwrap();
    assert!((mean - 0.6).abs() < 1e-12 && (std - 0.1 / 2_f64.sqrt()).abs() < 1e-12, "{f1:?}");
    assert_eq!(f1.tail, f1.last, "of rounds 9 and 10, one has it");
    let auc = scheme.scores["auc"];
    assert_eq!((auc.last, auc.tail), (Some(Spread { mean: 0.5, std: 0.0 }), None));
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<fedcote_sim::summary::Summary>(&text).unwrap(), summary);
    // A run that diverged has none.
    let mut file = OpenOptions::new().append(true).open(out.join("mine/3/metrics.jsonl")).unwrap();
    file.write_all(b"{\"diverged_at\":11}\n").unwrap();
    let (summary, _) = summarise(out).unwrap();
    assert_eq!(summary.schemes[0].scores["f1"].last, Some(Spread { mean: 0.55, std: 0.0 }));
}

fn rounds(lines: &[String]) -> Vec<u32> {
    let round = |line: &String| match Line::parse(line.as_bytes(), 0) {
        Ok(Line::Round(report)) => report.round,
        other => panic!("{line}: {other:?}"),
    };
    lines.iter().map(round).collect()
}

#[test]
fn a_growing_file_is_told_line_by_line_and_so_is_a_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let mut tail = Tail::default();
    let mut look = |text: &str| {
        fs::write(&path, text).unwrap();
        tail.look(&File::open(&path).unwrap(), 1 << 20).unwrap()
    };
    let news = look(&(lines(1..=3) + "{\"round\":4,"));
    assert_eq!((rounds(&news.lines), news.cut), (vec![1, 2, 3], None));
    let news = look(&lines(1..=4));
    assert_eq!((rounds(&news.lines), news.cut), (vec![4], None));
    assert_eq!(look(&lines(1..=4)), Default::default());
    // Cut back to a checkpoint at round 2 while round 3 is being written again.
    let news = look(&(lines(1..=2) + "{\"round\":3,"));
    assert_eq!((rounds(&news.lines), news.cut), (vec![], Some(2)));
    let news = look(&(lines(1..=3) + "{\"diverged_at\":4}\n"));
    assert_eq!((rounds(&news.lines), news.cut, news.diverged_at), (vec![3], None, Some(4)));
    // Damaged lines are told, not shown.
    let news = look(&(lines(1..=3) + "{\"diverged_at\":4}\n<script>\n" + &line(3)));
    assert_eq!(rounds(&news.lines), [0; 0]);
    assert_eq!(news.damaged, Some((6, "round 3 after round 3".to_owned())));
}

#[test]
fn a_run_cut_back_and_grown_between_two_looks_has_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let mut tail = Tail::default();
    let mut look = |text: &str| {
        fs::write(&path, text).unwrap();
        tail.look(&File::open(&path).unwrap(), 1 << 20).unwrap()
    };
    assert_eq!(rounds(&look(&lines(1..=4)).lines), [1, 2, 3, 4]);
    // Played again the lines are the same; one more is new.
    let news = look(&lines(1..=5));
    assert_eq!((rounds(&news.lines), news.cut), (vec![5], None));
    // Another run in its place, whose lines are longer, or end where the old ones did: it used to be shown with rounds
    // of the old one, or as damaged.
    let other = |round| line(round).replace('}', ",\"train_loss\":0.5}");
    let news = look(&(1..=5).map(other).collect::<String>());
    assert_eq!((rounds(&news.lines), news.cut, news.damaged), (vec![1, 2, 3, 4, 5], Some(0), None));
    let length = (1..=5).map(other).collect::<String>().len();
    let first = format!("{:width$}\n", line(1).trim_end(), width = length - 1);
    let news = look(&(first + &lines(2..=3)));
    assert_eq!((rounds(&news.lines), news.cut, news.damaged), (vec![1, 2, 3], Some(0), None));
}

#[test]
fn a_look_is_bounded_and_says_that_there_is_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    fs::write(&path, lines(1..=9)).unwrap();
    let (mut tail, mut told) = (Tail::default(), Vec::new());
    let file = File::open(&path).unwrap();
    let most = line(1).len() as u64 + 1;
    for more in [true, true, true, true, false] {
        let news = tail.look(&file, most).unwrap();
        assert!(news.more == more && news.bytes <= 2 * line(1).len() as u64, "{news:?}");
        told.extend(rounds(&news.lines));
    }
    assert_eq!(told, (1..=9).collect::<Vec<u32>>());
    // A file without line ends, longer than any line, is told once and read no more.
    File::options().write(true).open(&path).unwrap().set_len(1 << 28).unwrap();
    let news = tail.look(&file, most).unwrap();
    assert_eq!(news.damaged, Some((10, "the line has no end".to_owned())));
    assert_eq!(tail.look(&file, most).unwrap(), Default::default());
    fs::write(&path, lines(1..=9)).unwrap();
    let news = tail.look(&file, most).unwrap();
    assert_eq!((news.cut, news.damaged), (None, None));
    fs::write(&path, lines(1..=10)).unwrap();
    assert_eq!(rounds(&tail.look(&file, most).unwrap().lines), [10]);
}

#[test]
fn the_last_round_is_found_behind_long_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let last = |text: &str| {
        fs::write(&path, text).unwrap();
        last_round(&File::open(&path).unwrap()).unwrap()
    };
    for (clients, rounds) in [(1, 1), (1, 3), (50_000, 1), (50_000, 3)] {
        let drawn = vec!["[0,1]"; clients].join(",");
        let long = |round| line(round).replace("[[0,1]]", &format!("[{drawn}]"));
        let whole: String = (1..=rounds).map(long).collect();
        assert_eq!(last(&whole), rounds, "{clients}");
        assert_eq!(last(&(whole.clone() + "{\"round\":9,\"sel")), rounds, "{clients}");
        assert_eq!(last(&(whole + "{\"diverged_at\":9}\n")), rounds, "{clients}");
    }
    assert_eq!(last(""), 0);
}

/// After a power cut, which leaves zeros at the end of a file, a run was told to be at round 0.
#[test]
fn the_last_round_is_found_before_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    for (text, round) in
        [(line(1) + &line(2), 2), (line(1) + "{\"round\":2,\"sel", 1), (String::new(), 0)]
    {
        for zeros in [0, 1, 700, 1 << 20, 3 << 30] {
            fs::write(&path, &text).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            file.set_len(text.len() as u64 + zeros).unwrap();
            assert_eq!(last_round(&file).unwrap(), round, "{text:?} and {zeros} zeros");
        }
    }
}
