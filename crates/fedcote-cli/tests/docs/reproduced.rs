//! Which of the paper's accuracies our committed tables reproduce: a page and its counts, made from the tables.

use std::fmt::Write as _;

use crate::{generated, root};

const TABLES: [&str; 5] = ["table-4", "table-6", "table-9", "table-11", "table-12"];

/// What is known about the schemes whose accuracies differ.
fn why(one: &Compared) -> &'static str {
    match (one.network, one.table, &*one.scheme) {
        _ if one.is_loss => "",
        (_, _, "tf-aggregation") => {
            "weights as printed shrink the model; another reading in `readings`"
        }
        // With K = N all three select everyone.
        ("literal", "table-11", "newt") => {
            "with the printed link parameters hardly any upload fails"
        }
        ("calibrated" | "harsh", "table-11", "newt" | "gs" | "power-of-choice") => {
            "with K = N it selects everyone; not explained"
        }
        ("calibrated", "table-11", "scaffold") if one.column.ends_with("non-iid") => {
            "`scaffold-printed` in `readings`, with the printed divisor, is reproduced"
        }
        (_, "table-11", "scaffold") => "not explained",
        (_, _, "newt") => {
            "who was never heard from comes first here; another reading in `readings`"
        }
        (_, _, "scaffold") => "a variate advances on arrival here; another reading in `readings`",
        ("harsh", _, name) if name.starts_with("fedcote") => {
            "the threshold leaves out all holders of some labels at four of five placements"
        }
        ("calibrated", "table-12", "fedcote-ii-4") => {
            "the threshold leaves out all holders of some labels while they are far away; with label coverage it is reproduced. The last round is one moment of the one walk of all five runs; the tail is higher"
        }
        ("calibrated", "table-9", name) if name.starts_with("fedcote") => {
            "short of the paper as the descent is in table 4, the more the smaller K_apx is"
        }
        ("calibrated", "table-4" | "table-6", name) if name.starts_with("fedcote") => {
            "in the paper above its own Ideal; a selection that undoes failures comes up to Ideal here"
        }
        ("literal", _, "fedavg" | "fednova" | "fedprox" | "gs" | "fedyogi" | "power-of-choice") => {
            "with the printed link parameters hardly any upload fails"
        }
        (_, "table-12", "power-of-choice") => {
            "the paper's loses 13 points to its own where clients stand, ours none; not explained"
        }
        (_, _, "gs") => {
            "at most 0.2 points above FedAvg here, in the paper 1.9 to 5.9; not explained"
        }
        _ => "not explained",
    }
}

/// A number of the paper and ours.
struct Compared {
    network: &'static str,
    table: &'static str,
    column: String,
    scheme: String,
    ours: (f64, f64),
    paper: (f64, f64),
    is_loss: bool,
}

impl Compared {
    fn difference(&self) -> f64 {
        self.ours.0 - self.paper.0
    }

    /// One point (of accuracies), or two standard errors of the difference of two means of five runs.
    fn limit(&self) -> f64 {
        let error = ((self.ours.1.powi(2) + self.paper.1.powi(2)) / 5.0).sqrt();
        if self.is_loss { 2.0 * error } else { 1f64.max(2.0 * error) }
    }

    fn is_reproduced(&self) -> bool {
        // A loss of 1e34 has blown up, and its spread would allow anything.
        self.difference().abs() <= self.limit().min(1e6)
    }

    /// Whether it is the same number of ours beside the same of the paper, whose tables round and repeat.
    fn repeats(&self, other: &Self) -> bool {
        let near = |one: (f64, f64), two: (f64, f64)| (one.0 - two.0).abs() < 0.015;
        near(self.ours, other.ours) && near(self.paper, other.paper)
    }

    fn line(&self) -> String {
        let Self { table, column, scheme, ours, paper, .. } = self;
        let verdict = match self.is_reproduced() {
            true => "reproduced".to_owned(),
            false => format!("**not**: {}", why(self)).trim_end_matches(": ").to_owned(),
        };
        let digits = if self.is_loss { 4 } else { 2 };
        // At the limit two digits do not tell on which side.
        let at_limit = (self.difference().abs() - self.limit()).abs() < 0.01 && !self.is_loss;
        let more = digits + usize::from(at_limit);
        let number = |value: f64, digits: usize| match value.abs() < 1e6 {
            true => format!("{value:.digits$}"),
            false => format!("{value:.1e}"),
        };
        let pair = |of: &(f64, f64)| format!("{} ± {}", number(of.0, digits), number(of.1, digits));
        let sign = if self.difference() < 0.0 { "-" } else { "+" };
        let difference = number(self.difference().abs(), more);
        let (ours, paper) = (pair(ours), pair(paper));
        format!(
            "| {table} | {column} | {scheme} | {ours} | {paper} | {sign}{difference} | {verdict} |\n"
        )
    }
}

/// How many, and how many of them are reproduced.
fn counted<'a>(all: impl Iterator<Item = &'a Compared>) -> (usize, usize) {
    all.fold((0, 0), |(count, sound), one| (count + 1, sound + usize::from(one.is_reproduced())))
}

/// Those that repeat none before them.
fn distinct(all: &[Compared]) -> impl Iterator<Item = &Compared> {
    let first = |at: usize| !all[..at].iter().any(|other| all[at].repeats(other));
    (0..all.len()).filter(move |&at| first(at)).map(|at| &all[at])
}

fn compared(network: &'static str) -> Vec<Compared> {
    let mut all = Vec::new();
    for table in TABLES {
        let path = root().join(format!("docs/results/paper/{network}/{table}.csv"));
        let Ok(mut reader) = csv::Reader::from_path(&path) else { continue };
        let header = reader.headers().expect("a header").clone();
        for record in reader.records() {
            let record = record.expect("a row");
            for (at, name) in header.iter().enumerate() {
                let is_loss = name.ends_with("loss");
                let factor = if is_loss { 1.0 } else { 100.0 };
                let number = |at: usize| Some(factor * record.get(at)?.parse::<f64>().ok()?);
                let own = header.get(at + 2) == Some("paper");
                let Some((ours, paper)) = number(at).zip(number(at + 2)).filter(|_| own) else {
                    continue;
                };
                all.push(Compared {
                    network,
                    table,
                    column: name.to_owned(),
                    scheme: record[0].to_owned(),
                    ours: (ours, number(at + 1).unwrap_or(0.0)),
                    paper: (paper, number(at + 3).unwrap_or(0.0)),
                    is_loss,
                });
            }
        }
    }
    all
}

#[test]
fn the_count_of_what_reproduces_is_that_of_the_tables() {
    let mut counts = String::from(
        "network,compared,reproduced,not,distinct,distinct reproduced,losses,losses reproduced\n",
    );
    let mut page = String::from(
        "# Ours, the paper's, the difference\n\n\
         Every accuracy of the paper's MNIST tables, in percent. *Reproduced*: within one point, or within two standard errors of the \
         difference of two means of five runs; a difference within 0.01 of that limit has a third digit. *Distinct*: without those that repeat another, ours and the paper's \
         (FedNova is FedAvg up to rounding; tables 4, 6 and 9 share columns; with K = N three schemes are one). Losses count apart, within two standard errors. Made from the tables in this folder by `cargo xtask docs`.\n",
    );
    for network in ["calibrated", "harsh", "literal"] {
        let all = compared(network);
        if all.is_empty() {
            continue;
        }
        let (losses, all): (Vec<Compared>, Vec<Compared>) =
            all.into_iter().partition(|one| one.is_loss);
        let (count, reproduced) = counted(all.iter());
        let (different, sound) = counted(distinct(&all));
        let (lost, near) = counted(losses.iter());
        let not = count - reproduced;
        let _ = writeln!(
            counts,
            "{network},{count},{reproduced},{not},{different},{sound},{lost},{near}"
        );
        let _ = writeln!(
            page,
            "\n## The {network} network: {reproduced} of {count} reproduced, of distinct ones {sound} of {different}"
        );
        let head = "| table | column | scheme | ours | paper | difference | |\n|---|---|---|---:|---:|---:|---|\n";
        let lines = |all: &[Compared]| all.iter().map(Compared::line).collect::<String>();
        let _ = write!(page, "\n{head}{}", lines(&all));
        let _ = write!(page, "\nLosses: {near} of {lost} reproduced.\n\n{head}{}", lines(&losses));
    }
    generated("docs/results/paper/reproduced.csv", &counts);
    generated("docs/results/paper/reproduced.md", &page);
}

#[test]
fn what_counts_as_reproduced_is_as_by_hand() {
    let one = |ours, paper| Compared {
        network: "calibrated",
        table: "table-4",
        column: String::new(),
        scheme: String::new(),
        ours,
        paper,
        is_loss: false,
    };
    assert!(one((90.9, 0.0), (90.0, 0.0)).is_reproduced());
    assert!(!one((91.1, 0.0), (90.0, 0.0)).is_reproduced());
    // √((9 + 16)/5) = 2.236: twice that is 4.47.
    assert!(one((94.4, 3.0), (90.0, 4.0)).is_reproduced());
    assert!(!one((94.5, 3.0), (90.0, 4.0)).is_reproduced());
    // A loss has no point of percent.
    let loss = |ours| Compared { is_loss: true, ..one((ours, 0.02), (0.15, 0.01)) };
    // √((0.0004 + 0.0001)/5) = 0.01.
    assert!(loss(0.1699).is_reproduced() && !loss(0.1701).is_reproduced());
}

/// Regression: +1.00 was reproduced in one table and not in another; repeats were counted like others.
#[test]
fn a_cell_at_the_limit_has_three_digits_and_a_repeat_counts_once() {
    let one = |ours, paper| Compared {
        network: "calibrated",
        table: "table-4",
        column: String::new(),
        scheme: String::new(),
        ours: (ours, 0.0),
        paper: (paper, 0.0),
        is_loss: false,
    };
    assert!(one(90.998, 90.0).line().contains("| +0.998 | reproduced |"));
    assert!(one(91.004, 90.0).line().contains("| +1.004 | **not**"));
    assert!(one(88.9, 90.0).line().contains("| -1.10 | **not**"));
    // The third repeats the first, as printed with another rounding.
    let all = [one(79.79, 80.89), one(79.49, 80.87), one(79.79, 80.90)];
    assert_eq!(counted(all.iter()), (3, 0));
    assert_eq!(distinct(&all).count(), 2);
}
