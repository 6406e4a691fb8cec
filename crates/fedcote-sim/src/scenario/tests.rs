use super::*;

fn parse(text: &str) -> Result<Scenario, Error> {
    Scenario::parse("mine.toml", text, &[], Path::new("."))
}

fn refusal(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn refused_override(assignment: &str) -> String {
    let overrides = [assignment.to_owned()];
    Scenario::parse("mine.toml", "", &overrides, Path::new(".")).unwrap_err().to_string()
}

#[test]
fn every_preset_is_sound_and_says_what_it_is() {
    for name in Preset::names() {
        let scenario = Scenario::load(&name, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let walks = scenario.to_table()["network"]["mobility"].as_str() == Some("walk");
        assert_eq!(walks, name.ends_with("-dynamic"), "{name}");
    }
    assert!(PRESETS.iter().all(|preset| preset.summary().len() > 20));
}

#[test]
fn what_is_printed_reads_back_the_same() {
    for name in Preset::names() {
        let scenario = Scenario::load(&name, &["network.knowledge=estimated".into()]).unwrap();
        assert_eq!(parse(&scenario.to_toml()).unwrap(), scenario, "{name}");
    }
}

#[test]
fn unknown_keys_name_line_and_remedy() {
    assert_eq!(
        refusal("rounds = 3\nround = 5\n"),
        "mine.toml:2: unknown key `round`; did you mean `rounds`?"
    );
    assert_eq!(
        refusal("rounds = 3\n\n[training]\nrate = 1.0\nbach = 5\n"),
        "mine.toml:5: unknown key `training.bach`; did you mean `batch`?"
    );
    assert_eq!(
        refusal("[scheme.fedcote]\nkapa = 3.0\n"),
        "mine.toml:2: unknown key `scheme.fedcote.kapa`; did you mean `kappa`?"
    );
    // The server's keys used to be missing from what is known of the network's table.
    assert_eq!(
        refusal("[network]\nknowlege = \"known\"\n"),
        "mine.toml:2: unknown key `network.knowlege`; did you mean `knowledge`?"
    );
    for (written, meant) in [
        ("server.knowledge", "network.knowledge"),
        ("training.label_privacy", "server.label_privacy"),
        // `network.clip` used to get no hint.
        ("network.clip", "server.clip"),
        ("rate", "training.rate"),
        ("network.rounds", "rounds"),
    ] {
        let expected = format!("--set {written}: unknown key; did you mean `{meant}`?");
        assert_eq!(refused_override(&format!("{written}=1")), expected);
    }
}

/// What the server does used to be in the table of the network.
#[test]
fn keys_that_moved_name_their_new_place() {
    assert_eq!(
        refusal("[network]\nkind = \"perfect\"\nexploration = 0.05\n"),
        "mine.toml:3: network.exploration is now server.exploration"
    );
    assert_eq!(
        refused_override("network.label_privacy=1.0"),
        "--set network.label_privacy: is now server.label_privacy"
    );
    let moved = parse("[server]\nexploration = 0.05\nlabel_privacy = 1.0\nclip = 2.0\n").unwrap();
    assert_eq!(
        moved.server,
        Server {
            exploration: 0.05,
            label_privacy: Some(1.0),
            clip: Some(2.0),
            ..Server::default()
        }
    );
    assert_eq!(
        refusal("[server]\nexploration = 1.5\n"),
        "mine.toml:2: server.exploration: must be from 0 to 1"
    );
}

#[test]
fn wrong_values_name_line_and_key() {
    assert_eq!(
        refusal("rounds = 3\n[training]\nrate = -1.0\n"),
        "mine.toml:3: training.rate: must be a positive number"
    );
    assert_eq!(refusal("\nrounds = 0\n"), "mine.toml:2: rounds: must be at least 1");
    assert_eq!(refusal("seeds = [1, 2, 1]\n"), "mine.toml:1: seeds: 1 is listed twice");
    assert!(refusal("schemes = [\"fedcot\"]\n").contains("did you mean `fedcote`?"));
    assert!(refusal("training = 3\n").contains("must be a table: write [training]"));
    assert_eq!(
        refusal("rounds = \"many\"\n"),
        "mine.toml:1: rounds: \"many\" is not a whole number"
    );
    assert!(refusal("rounds = = 3\n").starts_with("mine.toml:1: "));
    let text = "[training]\nlocal_steps = [7, 3]\n";
    assert!(refusal(text).starts_with("mine.toml:2: training.local_steps: "), "{}", refusal(text));
}

/// Found by fuzzing: the number of weights overflowed, in a panic.
#[test]
fn a_model_larger_than_memory_is_refused() {
    for sizes in ["[9223372036854775807]", "[1000000, 1000000]", "[1, 18446744073709551, 1]"] {
        let told = refusal(&format!("[model]\nkind = \"mlp\"\nhidden = {sizes}\n"));
        assert!(told.starts_with("mine.toml:3: model.hidden: layers with more than"), "{told}");
    }
}

/// `network.failure` without `kind = "fixed"` used to be ignored. Whoever sets another kind on top of a file does not
/// mean the file's keys for its own kind, but does mean the keys that are set beside it.
#[test]
fn an_override_of_the_kind_drops_what_the_file_says_about_its_own() {
    let load = |name: &str, overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        Scenario::load(name, &overrides)
    };
    for name in ["paper-calibrated", "paper-dynamic", "quickstart-dynamic", "cifar10"] {
        let perfect = load(name, &["network.kind=perfect"]).unwrap().network;
        assert_eq!(perfect.outdoor_excess_loss_db, 0.0);
        assert_eq!(perfect.mobility, fedcote_radio::Mobility::None);
        let fixed = load(name, &["network.failure=0.5", "network.kind=fixed"]).unwrap().network;
        assert_eq!(fixed.failure, Some(fedcote_radio::PerClient::All(0.5)));
        // Keys that every kind reads stay.
        let preset = load(name, &[]).unwrap().network;
        assert_eq!(fixed.deadline_seconds, preset.deadline_seconds);
    }
    for (overrides, told) in [
        (
            &["network.failure=0.5"][..],
            "--set network.failure: has no effect here: it belongs to kind = \"fixed\"",
        ),
        (
            &["network.kind=perfect", "network.cell_radius_m=100"][..],
            "--set network.cell_radius_m: has no effect here: it belongs to kind = \"radio\"",
        ),
        (
            &["network.kind=perfect", "network.standards.4g.power_dbm=1"][..],
            "has no effect here: it belongs to kind = \"radio\"",
        ),
        (&["network.kind=perfct"][..], "did you mean `perfect`?"),
    ] {
        let error = load("paper-calibrated", overrides).unwrap_err().to_string();
        assert!(error.contains(told), "{overrides:?}: {error}");
    }
    assert_eq!(
        refusal("[network]\nkind = \"perfect\"\ncell_radius_m = 100\n"),
        "mine.toml:3: network.cell_radius_m: has no effect here: it belongs to kind = \"radio\""
    );
    // What the program prints is read again.
    let printed = load("paper-calibrated", &["network.kind=perfect"]).unwrap().to_toml();
    Scenario::parse("mine.toml", &printed, &[], Path::new(".")).unwrap();
}

#[test]
fn overrides_are_blamed_for_their_own_mistakes() {
    assert_eq!(
        refused_override("training.rat=3"),
        "--set training.rat: unknown key; did you mean `rate`?"
    );
    assert_eq!(
        refused_override("training.rate=-3"),
        "--set training.rate: must be a positive number"
    );
    // A key used to be said twice, types of the program to be shown, and reasons to be those of another mistake.
    for (assignment, reason) in [
        ("rounds=1.5", "1.5 is not a whole number"),
        ("rounds=-1", "-1 is not a whole number from 0 to 4294967295"),
        ("clients=-1", "-1 is not a whole number of 0 or more"),
        ("rounds=[1]", "a list is not a whole number"),
        ("seeds=1", "1 is not a list"),
        ("schemes=[1]", "schemes[0]: 1 is not text"),
        ("seeds=[1.5]", "seeds[0]: 1.5 is not a whole number"),
        ("training.rate=fast", "\"fast\" is not a number"),
        ("training.rate=1e300", "must be from 1e-30 to 1e30"),
        ("training.rate=1e-300", "must be from 1e-30 to 1e30"),
        ("training.local_steps=x", "must be a whole number, or [low, high]"),
        (
            "training.rate_changes=[[1]]",
            "training.rate_changes[0]: a list of 1 is not a list of two numbers",
        ),
        (
            "training.rate_changes=[[0, 1]]",
            "must be [[round, rate], …] with growing rounds from 1 and rates from 1e-30 to 1e30",
        ),
        ("network.rayleigh=3", "3 is not true or false"),
        ("network.stragglers=3", "3 is not a table"),
        ("network.file=3", "3 is not text"),
        ("network.cell_radius_m=1e300", "must be at most 1e6, not 1e300"),
        (
            "network.estimator=3",
            "must be a name, or a table with `kind` and parameters of that kind",
        ),
        ("scheme.fedcote.efficiency=1e300", "must be from 0 to 1000000"),
        ("scheme.fedcote.kappa=-1", "must be a number of 0 or more"),
    ] {
        let key = assignment.split('=').next().unwrap();
        assert_eq!(refused_override(assignment), format!("--set {key}: {reason}"));
    }
    assert!(refused_override("rounds").contains("expected key=value"));
    assert!(refused_override("rounds.x=1").contains("rounds"));
}

#[test]
fn overrides_need_no_quotes() {
    let overrides = ["data.partition=iid", "seeds=[4,5]", "training.rate=0.5"].map(str::to_owned);
    let scenario = Scenario::load("quickstart", &overrides).unwrap();
    assert_eq!(scenario.general.seeds, [4, 5]);
    assert_eq!(scenario.training.rate, 0.5);
    assert_eq!(scenario.to_table()["data"]["partition"].as_str(), Some("iid"));
}

#[test]
fn a_missing_file_suggests_a_preset() {
    let error = Scenario::load("quikstart", &[]).unwrap_err().to_string();
    assert_eq!(error, "quikstart: no such file or preset; did you mean `quickstart`?");
}

#[test]
fn the_rate_changes_when_told() {
    let training = Training { rate_changes: vec![(10, 0.5), (20, 0.25)], ..Default::default() };
    assert_eq!(
        [1, 9, 10, 19, 20, 99].map(|r| training.rate_in(r)),
        [0.05, 0.05, 0.5, 0.5, 0.25, 0.25]
    );
}

#[test]
fn an_estimator_is_named_or_described() {
    let named = parse("[network]\nestimator = \"window\"\n").unwrap();
    let full = parse("[network]\nestimator = { kind = \"window\", rounds = 50 }\n").unwrap();
    assert_eq!(named.observation.estimator, full.observation.estimator);
    assert!(
        refusal("[network]\nestimator = \"windw\"\n").starts_with("mine.toml:2: network.estimator")
    );
}

#[test]
fn pilots_are_for_an_estimator_that_looks_at_them() {
    let text =
        "[network]\npilots = \"everyone\"\nknowledge = \"estimated\"\nestimator = \"signal\"\n";
    let scenario = parse(text).unwrap();
    assert_eq!(scenario.observation.pilots, crate::scenario::Pilots::Everyone);
    assert!(scenario.to_toml().contains("pilots = \"everyone\""));
    assert!(!parse("").unwrap().to_toml().contains("pilots"), "old folders go on");
    let unseen = "mine.toml:2: network.pilots: \"everyone\" is for knowledge = \"estimated\" with the estimator \"signal\"";
    for rest in ["estimator = \"signal\"", "knowledge = \"estimated\""] {
        assert_eq!(refusal(&format!("[network]\npilots = \"everyone\"\n{rest}\n")), unseen);
    }
    let fixed = text.to_owned() + "kind = \"fixed\"\nfailure = 0.5\n";
    assert_eq!(
        refusal(&fixed),
        "mine.toml:2: network.pilots: has no effect here: it belongs to kind = \"radio\""
    );
}

/// A table for a misspelt scheme used to be read and forgotten.
#[test]
fn a_table_for_a_scheme_that_is_not_compared_is_refused() {
    assert_eq!(
        refusal("rounds = 3\n[scheme.fedcoat]\ndraws = \"systematic\"\n"),
        "mine.toml:2: scheme.fedcoat: no scheme `fedcoat` is compared; did you mean `fedcote`?"
    );
    let prox =
        "schemes = [\"fedprox\"]\n[scheme.fedprox]\nmu = 0.5\n[scheme.fedyogi]\nbeta1 = 0.5\n";
    parse(prox).unwrap();
}

#[test]
fn numbers_are_printed_as_they_were_written() {
    let text = parse("[scheme.fedprox]\nmu = 0.1\n").unwrap().to_toml();
    assert!(text.contains("rate = 0.05\n") && text.contains("mu = 0.1\n"), "{text}");
}

/// A margin tells of one transmission; how many there are is the network's to say.
#[test]
fn estimators_fit_the_retransmissions_of_the_network() {
    assert_eq!(
        refusal("[network]\nretransmissions = 2\nestimator = \"signal\"\n"),
        "mine.toml:3: network.estimator: \"signal\" is for uploads without retransmissions; use \"retransmissions\""
    );
    let told = "[network]\nestimator = { kind = \"retransmissions\", retransmissions = 3 }\n";
    assert!(
        refusal(told).contains("3 retransmissions, network.retransmissions is 0"),
        "{}",
        refusal(told)
    );
    let text = "[network]\nretransmissions = 2\nestimator = \"retransmissions\"\n";
    let kind = parse(text).unwrap().estimator();
    assert_eq!(
        kind,
        fedcote::estimate::EstimatorKind::Retransmissions {
            retransmissions: 2,
            retention: 0.98,
            prior: 0.5,
            strength: 2.0
        }
    );
    assert_eq!(
        refusal("[network]\nkind = \"perfect\"\nretransmissions = 2\n"),
        "mine.toml:3: network.retransmissions: has no effect here: it belongs to kind = \"radio\""
    );
}
