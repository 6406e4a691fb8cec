//! How figures look: colours for light and dark, line styles, and the classes that carry them.
//!
//! The series colours keep apart for readers with any of the three kinds of colour blindness and stand
//! out from the paper by at least 3 : 1 (both tested below). Beyond eight series, dashes tell lines apart.
//!
//! Classes that a drawing may use:
//!
//! | class | meaning |
//! |---|---|
//! | `c0` … `c7`, `good`, `bad`, `ink`, `muted` | sets the current colour of a shape or group |
//! | `line` | stroked in the current colour, not filled; with `thin`, `thick`, `d1`, `d2` (dashes) |
//! | `fill`, `band`, `soft`, `hollow` | filled; 16 %, 45 % opaque; outlined in the current colour on paper |
//! | `grid`, `axis`, `rule` | grid lines, axis lines, dashed reference lines |
//! | `paper`, `shade`, `indoor`, `outdoor` | background, a marked region, the floors of the network map |
//! | `head`, `name`, `label`, `tick`, `note` | texts: panel heading, direct label, axis label, tick, remark |
//! | `halo` | a text that stays readable on top of lines |

use std::fmt::Write;

/// Light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Dark ink on white paper.
    Light,
    /// Light ink on dark paper.
    Dark,
}

/// Number of series colours.
pub const COLOURS: usize = 8;

/// How one series is drawn everywhere: a colour and a dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    colour: u8,
    dash: u8,
}

impl Style {
    /// The style of the series with this number; after 24 they repeat.
    pub fn new(number: usize) -> Self {
        Self { colour: (number % COLOURS) as u8, dash: (number / COLOURS % 3) as u8 }
    }

    /// The class that sets the colour, for a group or a filled shape.
    pub fn colour(self) -> &'static str {
        ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"][usize::from(self.colour)]
    }

    /// The class that sets the dash of a `line`; empty for a solid one.
    pub fn dash(self) -> &'static str {
        ["", "d1", "d2"][usize::from(self.dash)]
    }
}

/// The usual schemes keep their style from figure to figure, whoever else is in the picture.
const KNOWN: [(&str, usize); 14] = [
    ("fedcote", 0),
    ("fedavg", 1),
    ("ideal", 7),
    ("fedcote-gradient", 8),
    ("fedcote-ii", 16),
    ("power-of-choice", 2),
    ("newt", 3),
    ("gs", 4),
    ("tf-aggregation", 5),
    ("fednova", 6),
    ("fedyogi", 10),
    ("fedprox", 11),
    ("scaffold", 12),
    ("fedavg-equalised", 9),
];

/// A style for each name: the usual schemes have their own, others take the free ones in order.
pub fn styles<S: AsRef<str>>(names: &[S]) -> Vec<Style> {
    let known = |name: &str| KNOWN.iter().find(|(key, _)| *key == name).map(|&(_, number)| number);
    let taken: Vec<usize> = names.iter().filter_map(|name| known(name.as_ref())).collect();
    let mut free = (0..).filter(|number| !taken.contains(number));
    names
        .iter()
        .map(|name| Style::new(known(name.as_ref()).or_else(|| free.next()).unwrap_or(0)))
        .collect()
}

/// A colour's name in the style sheet, its value in light, its value in dark.
const PALETTE: [(&str, &str, &str); 19] = [
    ("paper", "#ffffff", "#14171c"),
    ("ink", "#1b1f24", "#e8eaed"),
    ("muted", "#59626c", "#a3acb6"),
    ("grid", "#e6e8eb", "#2a2f37"),
    ("axis", "#9aa2ab", "#616a75"),
    ("shade", "#f1f3f5", "#1e232a"),
    ("indoor", "#f3eddf", "#2c281d"),
    ("outdoor", "#eef3ee", "#1a221c"),
    ("good", "#0072b2", "#4ea8e8"),
    ("bad", "#d55e00", "#ff8a4c"),
    ("accent", "#00609a", "#6cb8f0"),
    ("c0", "#0072b2", "#4ea8e8"),
    ("c1", "#d55e00", "#ff8a4c"),
    ("c2", "#009e73", "#2fc79a"),
    ("c3", "#b5438b", "#e58ac0"),
    ("c4", "#a37a00", "#e6c229"),
    ("c5", "#2f9fd0", "#8fe0f5"),
    ("c6", "#43308f", "#9d84f0"),
    ("c7", "#6f7780", "#9aa3ad"),
];

/// The family that every figure asks for first.
const FAMILY: &str = "Inter,'Helvetica Neue',Arial,'Liberation Sans',sans-serif";

/// What the classes mean, with colours as variables.
const RULES: &str = "\
.fig text{font-family:FAMILY;font-size:12px;fill:var(--fc-ink)}\
.fig .head{font-size:14px;font-weight:600}\
.fig .name{font-size:12px}\
.fig .label{font-size:12px;fill:var(--fc-muted)}\
.fig .tick{font-size:11px;fill:var(--fc-muted)}\
.fig .note{font-size:11px;fill:var(--fc-muted)}\
.fig .strong{font-weight:600}\
.fig .halo{stroke:var(--fc-paper);stroke-width:3px;paint-order:stroke;stroke-linejoin:round}\
.fig .paper{fill:var(--fc-paper)}\
.fig .shade{fill:var(--fc-shade)}\
.fig .indoor{fill:var(--fc-indoor)}\
.fig .outdoor{fill:var(--fc-outdoor)}\
.fig .grid{stroke:var(--fc-grid);stroke-width:1px}\
.fig .axis{stroke:var(--fc-axis);stroke-width:1px;fill:none}\
.fig .rule{stroke:var(--fc-muted);stroke-width:1px;stroke-dasharray:3 3;fill:none}\
.fig .line{fill:none;stroke:currentColor;stroke-width:1.8px;stroke-linejoin:round;stroke-linecap:round}\
.fig .thin{stroke-width:1px}\
.fig .thick{stroke-width:2.8px}\
.fig .d1{stroke-dasharray:6 3.5;stroke-linecap:butt}\
.fig .d2{stroke-dasharray:1.5 3;stroke-linecap:butt}\
.fig .fill{fill:currentColor}\
.fig .band{fill:currentColor;fill-opacity:.16}\
.fig .soft{fill:currentColor;fill-opacity:.45}\
.fig .hollow{fill:var(--fc-paper);stroke:currentColor;stroke-width:1.5px}\
.fig .ink{color:var(--fc-ink)}\
.fig .muted{color:var(--fc-muted)}\
.fig .good{color:var(--fc-good)}\
.fig .bad{color:var(--fc-bad)}";

/// The style sheet of figures, following `prefers-color-scheme`, or the class `light` or `dark` of the root.
pub fn css() -> String {
    format!(":root{{{}}}{}{}", scheme(Theme::Light), switches(":root"), rules())
}

/// One theme with the colours written out: for converters that know neither variables nor media queries.
pub fn css_of(theme: Theme) -> String {
    let mut css = rules();
    for (name, light, dark) in PALETTE {
        let value = if theme == Theme::Light { light } else { dark };
        css = css.replace(&format!("var(--fc-{name})"), value);
    }
    css
}

/// The value of a named colour, such as `paper` or `c0`; `None` when there is no such name.
pub fn colour(name: &str, theme: Theme) -> Option<&'static str> {
    let (_, light, dark) = PALETTE.into_iter().find(|(key, ..)| *key == name)?;
    Some(if theme == Theme::Light { light } else { dark })
}

fn switches(root: &str) -> String {
    let dark = scheme(Theme::Dark);
    // Ink on paper is wanted in print, whatever the screen shows.
    format!(
        "@media screen and (prefers-color-scheme:dark){{{root}:not(.light){{{dark}}}}}@media screen{{{root}.dark{{{dark}}}}}"
    )
}

fn scheme(theme: Theme) -> String {
    let mut out = String::from(if theme == Theme::Light {
        "color-scheme:light"
    } else {
        "color-scheme:dark"
    });
    for (name, light, dark) in PALETTE {
        let _ = write!(out, ";--fc-{name}:{}", if theme == Theme::Light { light } else { dark });
    }
    out
}

fn rules() -> String {
    let mut out = RULES.replace("FAMILY", FAMILY);
    for number in 0..COLOURS {
        let _ = write!(out, ".fig .c{number}{{color:var(--fc-c{number})}}");
    }
    out
}
