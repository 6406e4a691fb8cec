//! The HTML around figures and table.

use std::fmt::Write;

use fedcote_sim::statistics::verdict;
use fedcote_support::quoted;

use super::figures::{Figure, accuracy_lines, dynamic, figures, tail_dots};
use super::{histories, names, script, table};
use crate::folder::Run;
use crate::panel::{Panel, figure};
use crate::svg::Escaped;
use crate::{font, theme};

/// The sections of a run, each with the figures it shows.
const SECTIONS: [(&str, &str, &[&str]); 6] = [
    ("accuracy", "Accuracy", &["accuracy", "accuracy-each"]),
    ("loss", "Loss", &["train-loss", "test-loss"]),
    ("labels", "Labels", &["labels"]),
    ("clients", "Clients", &["clients"]),
    ("network", "Network", &["network"]),
    ("arrivals", "Arrivals", &["arrivals", "arrivals-over-rounds"]),
];

pub(super) fn html(runs: &[Run]) -> String {
    let names = names(runs);
    let title = match &names[..] {
        [name] => format!("Report on {name}"),
        _ => format!("Comparison of {} runs", names.len()),
    };
    let mut contents = vec![("summary".to_owned(), "Summary".to_owned(), 0)];
    let mut body = summary(runs, &names);
    contents.push(("explore".to_owned(), "Explore".to_owned(), 0));
    // Shown by the script; without one, the figures below have the same curves.
    body.push_str(
        "<section id=\"explore-section\" aria-labelledby=\"explore\" hidden><h2 id=\"explore\">Explore</h2>\
         <div id=\"chart\"></div></section>",
    );
    let histories = histories::data(runs);
    if let Some(data) = &histories {
        contents.push(("each-client".to_owned(), "Client by client".to_owned(), 0));
        body.push_str(&each_client(data));
    }
    for (index, (run, name)) in runs.iter().zip(&names).enumerate() {
        let several = runs.len() > 1;
        let prefix = if several { format!("run{}-", index + 1) } else { String::new() };
        if several {
            let id = format!("run{}", index + 1);
            let _ =
                write!(body, "<h2 class=\"run\" id=\"{id}\">{}</h2>{}", Escaped(name), facts(run));
            contents.push((id, name.clone(), 0));
        }
        one(run, &prefix, usize::from(several), &mut body, &mut contents);
    }
    let _ = write!(
        body,
        "<script type=\"application/json\" id=\"chart-data\">{}</script><script type=\"module\">{}</script>",
        // Nothing in it may end the element.
        script::series(runs).to_string().replace('<', "\\u003c"),
        *script::SCRIPT
    );
    if let Some(data) = histories {
        let _ = write!(
            body,
            "<script type=\"application/json\" id=\"client-data\">{}</script>",
            data.to_string().replace('<', "\\u003c"),
        );
    }
    let facts = if let [run] = runs { facts(run) } else { String::new() };
    shell(&title, &facts, &contents, &body, runs.len() > 1)
}

/// Where the script shows one client; without a script there is nothing to see.
fn each_client(data: &serde_json::Value) -> String {
    let left = match data["left_out"].as_u64() {
        None | Some(0) => String::new(),
        Some(runs) => format!(
            " {runs} more would make this file too large; `fedcote serve` shows all of them."
        ),
    };
    format!(
        "<section id=\"each-client-section\" aria-labelledby=\"each-client\" hidden>\
         <h2 id=\"each-client\">Client by client</h2>\
         <p>What became of one client, and why. A click on a client in the figures below shows it here, too.{left}</p>\
         <div class=\"chart-bar\"><label>Run <select id=\"each-run\"></select></label>\
         <label>Client <select id=\"each-client-name\"></select></label></div><div id=\"client-panel\"></div></section>"
    )
}

/// A whole page around its body; sections of `several` runs are below their run's.
pub(super) fn shell(
    title: &str,
    facts: &str,
    contents: &[(String, String, usize)],
    body: &str,
    several: bool,
) -> String {
    let mut out = String::with_capacity(body.len() + 200_000);
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\
         <title>{title}</title><style>{}{}{}</style></head><body>\
         <a class=\"skip\" href=\"#summary\">Skip to the summary</a><header><h1>{title}</h1>",
        theme::css(),
        font::css(),
        super::STYLE,
        title = Escaped(title),
        policy = script::policy(),
    );
    out.push_str(facts);
    out.push_str("</header><nav aria-label=\"Contents\"><ul>");
    for (id, text, level) in contents {
        let class = match (level, several) {
            (1, _) => " class=\"sub\"",
            (_, true) => " class=\"own\"",
            _ => "",
        };
        let _ = write!(out, "<li{class}><a href=\"#{id}\">{}</a></li>", Escaped(text));
    }
    let _ = writeln!(
        out,
        "</ul></nav><main>{body}</main><footer>Made by fedcote {}. This page needs no network.</footer></body></html>",
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// One line on what was run.
fn facts(run: &Run) -> String {
    let seeds = run.schemes.iter().map(|scheme| scheme.seeds.len()).max().unwrap_or(0);
    let count =
        |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let mut parts = vec![
        count(run.schemes.len(), "scheme"),
        count(seeds, "seed"),
        count(run.rounds as usize, "round"),
    ];
    if let Some(clients) =
        run.schemes.iter().flat_map(|s| &s.seeds).find_map(|seed| seed.clients.as_ref())
    {
        parts.push(count(clients.clients.len(), "client"));
    }
    if run.unfinished > 0 {
        parts.push(format!("{} not finished", count(run.unfinished, "run")));
    }
    let spent = |scheme: &crate::folder::Scheme| {
        scheme.summary.seconds.map_or(0.0, |seconds| seconds.mean * scheme.seeds.len() as f64)
    };
    let seconds: f64 = run.schemes.iter().map(spent).sum();
    if seconds >= 1.0 {
        parts.push(match seconds {
            0.0..120.0 => format!("computed for {seconds:.0} s"),
            120.0..7200.0 => format!("computed for {:.0} min", seconds / 60.0),
            _ => format!("computed for {:.1} h", seconds / 3600.0),
        });
    }
    parts.extend(run.written.as_ref().map(|day| format!("written {day}")));
    if let Some(version) = &run.version {
        parts.push(format!("fedcote {version}"));
    }
    format!("<p class=\"facts\">{}</p>", Escaped(&parts.join(" · ")))
}

fn summary(runs: &[Run], names: &[String]) -> String {
    let table = table(runs);
    let mut out =
        String::from("<section aria-labelledby=\"summary\"><h2 id=\"summary\">Summary</h2>");
    for (run, name) in runs.iter().zip(names) {
        let schemes: Vec<_> = run.schemes.iter().map(|scheme| scheme.summary.clone()).collect();
        if let Some(verdict) = verdict(&schemes) {
            let folder = if runs.len() > 1 { format!("{name}: ") } else { String::new() };
            let _ = write!(out, "<p>{}{}</p>", Escaped(&folder), Escaped(&verdict));
        }
    }
    let sets = runs.iter().flat_map(|run| run.instructions.clone()).collect();
    for reason in runs.iter().flat_map(|run| &run.damaged) {
        let _ = write!(out, "<p><strong>Left out:</strong> {}.</p>", Escaped(reason));
    }
    if let Some(warning) = fedcote_sim::summary::mixed(&sets) {
        let _ = write!(out, "<p><strong>Note:</strong> {}.</p>", Escaped(&warning));
    }
    let warnings = warnings(runs, names);
    if !warnings.is_empty() {
        out.push_str("<details><summary>Warnings of the selection</summary><ul>");
        for warning in warnings {
            let _ = write!(out, "<li>{}</li>", Escaped(&warning));
        }
        out.push_str("</ul></details>");
    }
    let _ = write!(
        out,
        "<div class=\"scroll\" role=\"region\" aria-label=\"Summary table\" tabindex=\"0\">{}</div>\
         <p class=\"facts\">The tail is the last fifth of the rounds, at most 100. The swing is the standard deviation of the accuracies \
         within the tail. Rounds, seconds, bytes and joules to {} count until the mean of the last ten rounds passes that. \
         The expected label χ² is the distance of the mix of labels that is to be expected in the aggregate from that of all data, Σ (share − \
         share in the data)² / share in the data; the realised one is that of the mix each round's aggregate had, averaged over rounds.</p>",
        table.html(),
        super::target(runs),
    );
    if let [run] = runs {
        out.extend(
            figures(run).iter().filter(|figure| figure.id == "tail").map(|figure| show(figure, "")),
        );
    } else {
        let pair = |(run, name): (&Run, &String)| (tail_dots(run, name), accuracy_lines(run, name));
        let (mut dots, mut lines): (Vec<_>, Vec<_>) = runs.iter().zip(names).map(pair).unzip();
        let ranges = lines.iter().map(|lines| lines.y_range());
        let range =
            ranges.fold((f64::INFINITY, f64::NEG_INFINITY), |a, b| (a.0.min(b.0), a.1.max(b.1)));
        lines.iter_mut().for_each(|lines| lines.range = Some(range));
        let ranges = dots.iter().map(|dots| dots.own_range());
        let range =
            ranges.fold((f64::INFINITY, f64::NEG_INFINITY), |a, b| (a.0.min(b.0), a.1.max(b.1)));
        dots.iter_mut().for_each(|dots| dots.range = Some(range));
        let side_by_side = |title: &'static str, panels: Vec<&dyn Panel>| {
            Figure::new("comparison", "", |width| {
                figure(title, &panels, if width < 600.0 { 1 } else { 2 }, width)
            })
        };
        out.push_str(&show(
            &side_by_side("Accuracy over the tail, run by run", dynamic(&dots)),
            "tail-",
        ));
        out.push_str(&show(
            &side_by_side("Test accuracy over rounds, run by run", dynamic(&lines)),
            "accuracy-",
        ));
    }
    out.push_str("</section>");
    out
}

/// What the selections warned of, scheme by scheme; seeds that say the same stand together.
fn warnings(runs: &[Run], names: &[String]) -> Vec<String> {
    let mut said: Vec<(String, String, Vec<String>)> = Vec::new();
    for (run, name) in runs.iter().zip(names) {
        for scheme in &run.schemes {
            let who = match runs.len() {
                1 => scheme.name.clone(),
                _ => format!("{name} · {}", scheme.name),
            };
            for seed in &scheme.seeds {
                for text in seed.clients.iter().flat_map(|clients| &clients.warnings) {
                    let seed = seed.seed.to_string();
                    match said.iter_mut().find(|(other, same, _)| *other == who && same == text) {
                        Some((_, _, seeds)) => seeds.push(seed),
                        None => said.push((who.clone(), text.clone(), vec![seed])),
                    }
                }
            }
        }
    }
    let line = |(who, text, seeds): &(String, String, Vec<String>)| {
        format!("{who}, seed {}: {text}", seeds.join(", "))
    };
    said.iter().map(line).collect()
}

fn one(
    run: &Run,
    prefix: &str,
    level: usize,
    body: &mut String,
    contents: &mut Vec<(String, String, usize)>,
) {
    let figures = figures(run);
    let heading = if level == 0 { "h2" } else { "h3" };
    let mut section = |id: &str, title: &str, inner: &str| {
        let id = format!("{prefix}{id}");
        let _ = write!(
            body,
            "<section aria-labelledby=\"{id}\"><{heading} id=\"{id}\">{title}</{heading}>{inner}</section>"
        );
        contents.push((id, title.to_owned(), level));
    };
    for (id, title, shown) in SECTIONS {
        let inner: String = figures
            .iter()
            .filter(|figure| shown.contains(&figure.id))
            .map(|f| show(f, prefix))
            .collect();
        if !inner.is_empty() {
            section(id, title, &inner);
        }
    }
    if let Some(scenario) = &run.scenario {
        section(
            "scenario",
            "Scenario",
            &format!("<pre tabindex=\"0\"><code>{}</code></pre>", Escaped(&scenario.text)),
        );
    }
    let path = run.path.display().to_string();
    let mut repeat = String::new();
    if let Some(command) = &run.command {
        let _ = write!(
            repeat,
            "<p>Made with:</p><pre tabindex=\"0\"><code>{}</code></pre>",
            Escaped(command)
        );
    }
    if run.scenario.is_some() {
        let version =
            run.version.as_ref().map_or(String::new(), |version| format!(" version {version}"));
        let _ = write!(
            repeat,
            "<p>The same numbers, bit for bit, come from the scenario above with fedcote{}:</p>\
             <pre tabindex=\"0\"><code>fedcote run {}</code></pre>",
            Escaped(&version),
            Escaped(&quoted(&format!("{path}/scenario.toml")))
        );
    }
    let _ = write!(
        repeat,
        "<p>This report comes from the files in the run folder:</p>\
         <pre tabindex=\"0\"><code>fedcote report {}</code></pre>",
        Escaped(&quoted(&path))
    );
    section("repeat", "How to repeat it", &repeat);
}

pub(super) fn show(figure: &Figure, prefix: &str) -> String {
    let mut out = format!("<figure id=\"figure-{prefix}{}\">", figure.id);
    let _ = write!(
        out,
        "<div class=\"wide\">{}</div><div class=\"narrow\">{}</div>",
        figure.wide.inline(),
        figure.narrow.inline()
    );
    if !figure.caption.is_empty() {
        let _ = write!(out, "<figcaption>{}</figcaption>", Escaped(&figure.caption));
    }
    out.push_str("</figure>");
    out
}
