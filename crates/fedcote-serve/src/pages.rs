//! The pages themselves: a few files that travel inside the program.

use std::sync::LazyLock;

use fedcote_plot::{font, report, theme};
use hyper::Response;
use hyper::body::Bytes;

use crate::reply::{Body, whole};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Colours, the font and the look of the report, with what the live page adds.
static STYLE: LazyLock<Bytes> = LazyLock::new(|| {
    let style =
        [&theme::css(), &font::css(), fedcote_plot::report::STYLE, include_str!("page/live.css")];
    style.concat().into()
});

/// The page or file at this address.
pub fn get(segments: &[&str]) -> Option<Response<Body>> {
    Some(match segments {
        [] => whole(HTML, include_str!("page/runs.html")),
        ["playground"] => whole(HTML, include_str!("page/playground.html")),
        ["assets", "style.css"] => whole("text/css; charset=utf-8", STYLE.clone()),
        ["compare"] => whole(HTML, include_str!("page/compare.html")),
        ["assets", "compare.js"] => whole(SCRIPT, include_str!("page/compare.js")),
        ["assets", "sweep.js"] => whole(SCRIPT, include_str!("page/sweep.js")),
        ["assets", "form.js"] => whole(SCRIPT, include_str!("page/form.js")),
        ["assets", "strip.js"] => whole(SCRIPT, include_str!("page/strip.js")),
        ["assets", "common.js"] => whole(SCRIPT, include_str!("page/common.js")),
        ["assets", "runs.js"] => whole(SCRIPT, include_str!("page/runs.js")),
        ["assets", "live.js"] => whole(SCRIPT, include_str!("page/live.js")),
        ["assets", "state.js"] => whole(SCRIPT, include_str!("page/state.js")),
        ["assets", "map.js"] => whole(SCRIPT, include_str!("page/map.js")),
        ["assets", "playground.js"] => whole(SCRIPT, include_str!("page/playground.js")),
        ["favicon.ico"] => whole("image/svg+xml", include_str!("page/icon.svg")),
        ["assets", name] => {
            let module = report::MODULES.into_iter().find(|(known, _)| known == name);
            whole(SCRIPT, module?.1)
        }
        _ => return None,
    })
}

/// What is answered to a person when it is not what was asked for.
pub fn refusal(reason: &str) -> Bytes {
    let page = include_str!("page/refusal.html");
    page.replace("{reason}", &fedcote_plot::svg::Escaped(reason).to_string()).into()
}

/// The page of a sweep.
pub fn sweep() -> Response<Body> {
    whole(HTML, include_str!("page/sweep.html"))
}

/// The page of one run.
pub fn run() -> Response<Body> {
    whole(HTML, include_str!("page/live.html"))
}
