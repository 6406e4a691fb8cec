use super::*;

fn schemes(name: &str, table: &str) -> Schemes {
    let mut schemes = Schemes::default();
    schemes.insert(name.to_owned(), table.parse().unwrap());
    schemes
}

fn refusal(name: &str, table: &str) -> String {
    schemes(name, table).resolve(name).unwrap_err().to_string()
}

#[test]
fn every_named_scheme_resolves_and_reads_what_it_says() {
    for named in NAMED {
        assert_eq!(Schemes::default().resolve(named.name).unwrap().name, named.name);
        // As a user's table, where a key that no part reads is refused.
        schemes("x", &super::named::named(named.name).unwrap().to_string()).resolve("x").unwrap();
    }
}

/// What a run's configuration writes out is the same scheme, with every parameter that its parts have.
#[test]
fn a_scheme_written_out_is_the_same_scheme() {
    for named in NAMED {
        let scheme = Schemes::default().resolve(named.name).unwrap();
        let table = scheme.table();
        let again = Schemes::default().resolved(named.name).unwrap();
        assert_eq!(again.resolve(named.name).unwrap(), scheme);
        for parameter in parameters().into_iter().filter(|parameter| parameter.default.is_some()) {
            let read = scheme.check_read(parameter.key).is_ok();
            assert_eq!(table.contains_key(parameter.key), read, "{}: {table}", parameter.key);
        }
    }
    let memory = Schemes::default().resolve("fedcote-memory").unwrap().table().to_string();
    for line in ["threshold = 0.95", "kappa = 1000.0", "coverage = true", "server_rate = 1.0"] {
        assert!(memory.lines().any(|found| found == line), "{line} in {memory}");
    }
}

#[test]
fn defaults_are_legal_and_parameters_are_explained() {
    for parameter in parameters() {
        assert!(parameter.about.ends_with('.'), "{parameter:?}");
        let mut table: Table =
            parameter.given.iter().fold(Table::new(), |mut table, (key, word)| {
                table.insert((*key).to_owned(), (*word).into());
                table
            });
        if let Some(default) = &parameter.default {
            table.extend(format!("{} = {default}", parameter.key).parse::<Table>().unwrap());
        }
        schemes("x", &table.to_string()).resolve("x").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_mixture_takes_the_rest_from_its_base() {
    let text = "base = \"fedcote\"\naggregation = \"yogi\"\nbeta1 = 0.5";
    let scheme = schemes("mine", text).resolve("mine").unwrap();
    assert!(matches!(scheme.selection, SelectionKind::Fedcote(_)));
    let AggregationKind::Yogi(yogi) = &scheme.aggregation else { panic!("{scheme:?}") };
    assert_eq!((yogi.beta1, yogi.beta2, yogi.server_rate), (0.5, 0.99, 0.01));
    // What the base says of a parameter holds for a part that is exchanged, its defaults do not.
    let text = "base = \"fedcote-memory\"\nselection = \"tf-aggregation\"\nserver_rate = 2";
    let scheme = schemes("mine", text).resolve("mine").unwrap();
    let SelectionKind::TfAggregation(tf) = &scheme.selection else { panic!("{scheme:?}") };
    assert_eq!((tf.threshold, tf.draws), (0.95, fedcote::Draws::Systematic));
    let AggregationKind::Memory(memory) = &scheme.aggregation else { panic!("{scheme:?}") };
    assert_eq!(memory.server_rate, 2.0);
    let scheme = schemes("mine", "base = \"fedyogi\"\naggregation = \"mean\"").resolve("mine");
    assert_eq!(scheme.unwrap().table()["server_rate"].as_float(), Some(1.0));
}

#[test]
fn a_parameter_without_effect_is_refused() {
    for (name, table, reason) in [
        ("fedavg", "mu = 0.1", "mu: has no effect here: it belongs to local = \"prox\""),
        (
            "newt",
            "threshold = 0.5",
            "threshold: has no effect here: it belongs to selection = \"tf-aggregation\" or \"fedcote\"",
        ),
        (
            "fedcote-gradient",
            "kappa = 3.0",
            "kappa: has no effect here: it belongs to selection = \"fedcote\" with solver = \"exact\"",
        ),
        (
            "fedcote",
            "k_apx = 3",
            "k_apx: has no effect here: it belongs to selection = \"fedcote\" with solver = \"gradient\"",
        ),
        ("fedavg", "kapa = 3", "kapa: no part of a scheme has this key"),
    ] {
        assert_eq!(refusal(name, table), format!("scheme.{name}.{reason}"));
    }
}

#[test]
fn illegal_values_are_refused() {
    for (table, reason) in [
        ("kappa = -1.0", "kappa: must be a number of 0 or more"),
        ("kappa = inf", "kappa: must be a number of 0 or more"),
        ("threshold = nan", "threshold: must be from 0 to 1"),
        ("threshold = 2", "threshold: must be from 0 to 1"),
        ("threshold = \"x\"", "threshold: \"x\" is not a number"),
        ("solver = \"gradient\"\nk_apx = 0", "k_apx: must be at least 1"),
        ("solver = \"exat\"", "solver: `exat` is not known; did you mean `exact`?"),
        ("draws = \"sistematic\"", "draws: `sistematic` is not known; did you mean `systematic`?"),
        ("selection = 3", "selection: 3 is not text"),
        ("base = \"fedcoat\"", "base: `fedcoat` is no named scheme; did you mean `fedcote`?"),
        (
            "selection = \"gs\"\naggregation = \"tf-aggregation\"",
            "aggregation: aggregation \"tf-aggregation\" needs a selection by probabilities",
        ),
    ] {
        assert_eq!(refusal("fedcote", table), format!("scheme.fedcote.{reason}"));
    }
    let candidates = "selection = \"power-of-choice\"\ncandidates = 0";
    assert_eq!(refusal("x", candidates), "scheme.x.candidates: must be at least 1");
}

#[test]
fn a_misspelt_scheme_gets_a_suggestion() {
    let error = Schemes::default().resolve("fedcoat").unwrap_err();
    assert_eq!(error.key, "schemes");
    assert!(error.reason.contains("did you mean `fedcote`?"), "{error}");
    assert!(Schemes::default().resolve("../evil").is_err());
}

#[test]
fn what_does_not_meet_the_network_is_a_reference() {
    let references = NAMED.iter().filter(|named| {
        Schemes::default().resolve(named.name).is_ok_and(|scheme| scheme.is_reference())
    });
    let names: Vec<&str> = references.map(|named| named.name).collect();
    assert_eq!(names, ["ideal", "fedavg-equalised"]);
    assert!(schemes("x", "base = \"ideal\"").resolve("x").unwrap().is_reference());
}

/// A scheme called `summary.json` used to fail when all rounds were computed.
#[test]
fn names_that_cannot_be_folders_are_refused_at_once() {
    for name in [
        "summary.json",
        "Summary.CSV",
        "report.html",
        "scenario.toml",
        "-x",
        ".x",
        "a b",
        "a/b",
        "",
    ] {
        let text = format!("schemes = [{name:?}]\n[scheme.{name:?}]\nbase = \"fedavg\"\n");
        let error =
            crate::Scenario::parse("test", &text, &[], ".".as_ref()).unwrap_err().to_string();
        assert!(error.contains("name"), "{name}: {error}");
    }
}
