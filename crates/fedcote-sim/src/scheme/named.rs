//! Schemes with a name: which parts each is made of.

use toml::Table;

/// A scheme with a name.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// What the user types.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its `[scheme.NAME]` table, as an inline table without braces; what it does not say is as in `fedavg`.
    pub table: &'static str,
}

/// The named schemes.
pub const NAMED: &[Named] = &[
    Named {
        name: "fedavg",
        about: "K draws in proportion to the weights; mean of what arrives",
        table: "",
    },
    Named {
        name: "power-of-choice",
        about: "the candidates with the highest loss",
        table: r#"selection = "power-of-choice", aggregation = "weighted-mean""#,
    },
    Named {
        name: "newt",
        about: "the clients whose last model is farthest from the global one",
        table: r#"selection = "newt", aggregation = "weighted-mean""#,
    },
    Named {
        name: "gs",
        about: "groups that together have the global label mix, in turn",
        table: r#"selection = "gs", aggregation = "weighted-mean""#,
    },
    Named {
        name: "tf-aggregation",
        about: "weights that make the expectation right, not normalised",
        table: r#"selection = "tf-aggregation", aggregation = "tf-aggregation""#,
    },
    Named {
        name: "fednova",
        about: "updates divided by their number of steps",
        table: r#"aggregation = "nova""#,
    },
    Named {
        name: "fedyogi",
        about: "an adaptive step on the server",
        table: r#"aggregation = "yogi""#,
    },
    Named {
        name: "fedprox",
        about: "a proximal term on the clients",
        table: r#"local = "prox", aggregation = "weighted-mean""#,
    },
    Named { name: "scaffold", about: "control variates", table: r#"local = "scaffold""# },
    Named {
        name: "ideal",
        about: "fedavg on a network without failures",
        table: r#"failures = "none""#,
    },
    Named {
        name: "fedcote",
        about: "selection that undoes the distortion by failures, solved exactly",
        table: r#"selection = "fedcote""#,
    },
    Named {
        name: "fedcote-gradient",
        about: "the same by the paper's projected gradient descent",
        table: r#"selection = "fedcote", solver = "gradient", coverage = false"#,
    },
    Named {
        name: "fedcote-ii",
        about: "the same descent for a smaller number of draws (K_apx = 4)",
        table: r#"selection = "fedcote", solver = "gradient", coverage = false, k_apx = 4"#,
    },
    Named {
        name: "fedavg-equalised",
        about: "fedavg when everyone fails with the mean probability",
        table: r#"failures = "equalised""#,
    },
    Named {
        name: "fedcote-memory",
        about: "the server's memory of updates, kept fresh, with the weights that fedcote aims at",
        // Who is remembered may come rarely; leaving out fewer clients leaves out less data.
        table: r#"selection = "fedcote", aggregation = "memory", draws = "systematic", aim = "freshness", threshold = 0.95"#,
    },
    Named {
        name: "fedcote-control",
        about: "fedcote-memory with control variates that the server works out: no drift, nothing kept on clients",
        table: r#"selection = "fedcote", aggregation = "control", draws = "systematic", aim = "freshness", threshold = 0.95"#,
    },
    Named {
        name: "fedcote-matched",
        about: "fedcote with weights that match this round's labels",
        table: r#"selection = "fedcote", aggregation = "label-matched""#,
    },
    Named {
        name: "mifa",
        about: "fedavg draws; the server remembers everyone's latest update",
        table: r#"aggregation = "memory""#,
    },
    Named {
        name: "fedvarp",
        about: "fedavg draws; variance reduced by everyone's latest update",
        table: r#"aggregation = "variance-reduced""#,
    },
    Named {
        name: "fedau",
        about: "fedavg draws; weights from observed participation",
        table: r#"aggregation = "fedau""#,
    },
    Named {
        name: "fedawe",
        about: "clients go on from their own models; echoes make up for rounds they missed",
        table: r#"aggregation = "fedawe""#,
    },
    Named {
        name: "fedpbc",
        about: "everybody trains in every round, heard or not; who is heard gets the mean",
        table: r#"selection = "everyone", aggregation = "fedpbc""#,
    },
    Named {
        name: "f3ast",
        about: "those asked most rarely for their weight, divided by the rate at which they arrive",
        table: r#"selection = "f3ast", aggregation = "f3ast""#,
    },
    Named {
        name: "fedstale",
        about: "fedavg-known, corrected by half of everyone's latest update",
        table: r#"aggregation = "fedstale""#,
    },
    Named {
        name: "ca-fed",
        about: "everyone who is there, without clients that do more harm than good",
        table: r#"selection = "ca-fed", aggregation = "known""#,
    },
    Named {
        name: "oort",
        about: "clients of high loss that are not slow, and some that were never tried",
        table: r#"selection = "oort""#,
    },
    Named {
        name: "fedavg-all",
        about: "fedavg draws; the absent count as clients that did not move",
        table: r#"aggregation = "all""#,
    },
    Named {
        name: "fedavg-known",
        about: "fedavg draws; what arrives is divided by the probability that it does",
        table: r#"aggregation = "known""#,
    },
    Named {
        name: "amplified-fedavg",
        about: "fedavg draws; the progress of every period is amplified",
        table: r#"aggregation = "amplified""#,
    },
    Named {
        name: "amplified-scaffold",
        about: "the same with control variates of the last period",
        table: r#"aggregation = "amplified-scaffold""#,
    },
    Named {
        name: "feddyn",
        about: "fedavg draws; a regulariser on clients that moves along",
        table: r#"aggregation = "feddyn""#,
    },
    Named {
        name: "fedbuff",
        about: "clients are always under way; the server steps when a buffer of updates is full",
        table: r#"selection = "buffered""#,
    },
    Named {
        name: "fedavg-median",
        about: "fedavg draws; the median of what arrives, coordinate by coordinate",
        table: r#"aggregation = "median""#,
    },
    Named {
        name: "fedavg-trimmed-mean",
        about: "fedavg draws; the mean without the smallest and largest values",
        table: r#"aggregation = "trimmed-mean""#,
    },
    Named {
        name: "fedavg-krum",
        about: "fedavg draws; the model that is nearest to the others",
        table: r#"aggregation = "krum""#,
    },
];

/// The table of a named scheme.
pub(super) fn named(name: &str) -> Option<Table> {
    let named = NAMED.iter().find(|named| named.name == name)?;
    let text = format!("scheme = {{ {} }}", named.table);
    let mut table: Table = text.parse().expect("a test reads all of them");
    match table.remove("scheme") {
        Some(toml::Value::Table(table)) => Some(table),
        _ => unreachable!("the text is a table of this name"),
    }
}
