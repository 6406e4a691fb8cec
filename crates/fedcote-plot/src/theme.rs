//! How figures look: colours for light and dark, line styles, and the classes that carry them.
//!
//! The series colours keep apart for readers with any of the three kinds of colour blindness and stand
//! out from the paper by at least 3 : 1 (both tested below). Beyond eight series, dashes tell lines apart.
//!
//! Classes that a drawing may use:
//!
//! | class | meaning |
//! |---|---|
//! | `c0` … `c7`, `good`, `bad`, `ink`, `muted`, `faint` | sets the current colour of a shape or group |
//! | `f0` … `f5` | the same, a sequential scale; use with `pin` |
//! | `pin` | filled in the current colour, outlined in ink; with `fine` for a crowd |
//! | `line` | stroked in the current colour, not filled; with `thin`, `thick`, `mark`, `d1`, `d2` (dashes) |
//! | `fill`, `band`, `veil`, `soft`, `dot`, `hollow` | filled; 16 %, 7 %, 45 %, 60 % opaque; outlined in the current colour on paper |
//! | `grid`, `axis`, `rule` | grid lines, axis lines, dashed reference lines |
//! | `paper`, `shade`, `indoor`, `outdoor` | background, a marked region, the floors of the network map |
//! | `head`, `name`, `strong`, `label`, `tick`, `note` | texts: panel heading, direct label, the same in bold, axis label, tick, remark |
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

/// Number of steps of the sequential scale `f0` … `f5`: the further from the paper, the more.
pub const STEPS: usize = 6;

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

/// The named schemes keep their style from figure to figure, whatever else is in the picture. FedCote, FedCote with memory,
/// FedAvg and Ideal, which are compared most often, have a colour of their own.
const KNOWN: &[(&str, usize)] = &[
    ("fedcote", 0),
    ("fedcote-memory", 2),
    ("fedavg", 1),
    ("ideal", 7),
    ("fedcote-gradient", 14),
    ("fedcote-ii", 16),
    ("fedcote-matched", 13),
    ("mifa", 8),
    ("fedvarp", 15),
    ("fedau", 17),
    ("power-of-choice", 18),
    ("newt", 19),
    ("fedcote-control", 3),
    ("gs", 4),
    ("tf-aggregation", 5),
    ("fednova", 6),
    ("fedyogi", 10),
    ("fedprox", 11),
    ("scaffold", 12),
    ("fedavg-equalised", 9),
];

/// Whether a scheme is what the reader looks for first.
pub fn is_strong(name: &str) -> bool {
    name == "fedcote"
}

/// A style for each name: the named schemes have their own, others take the free ones in order.
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
const PALETTE: [(&str, &str, &str); 26] = [
    ("paper", "#ffffff", "#14171c"),
    ("ink", "#1b1f24", "#e8eaed"),
    ("muted", "#59626c", "#a3acb6"),
    ("grid", "#e6e8eb", "#2a2f37"),
    ("axis", "#9aa2ab", "#616a75"),
    ("faint", "#c3c9d0", "#454d57"),
    ("shade", "#f1f3f5", "#1e232a"),
    ("indoor", "#f3eddf", "#2c281d"),
    ("outdoor", "#eef3ee", "#1a221c"),
    ("good", "#0072b2", "#3d9be0"),
    ("bad", "#d55e00", "#f07030"),
    ("accent", "#00609a", "#6cb8f0"),
    ("c0", "#0072b2", "#3d9be0"),
    ("c1", "#d55e00", "#f07030"),
    ("c2", "#119c62", "#5fc96a"),
    ("c3", "#a8277a", "#d86fb0"),
    ("c4", "#7a5c00", "#f2d24b"),
    ("c5", "#3e97ec", "#8fdcff"),
    ("c6", "#4a35a8", "#7a5fd8"),
    ("c7", "#1b1f24", "#f5f6f7"),
    ("f0", "#fffbe0", "#3d2a1a"),
    ("f1", "#fee391", "#6b3f17"),
    ("f2", "#fdb338", "#a65a14"),
    ("f3", "#e2711d", "#e08a2e"),
    ("f4", "#a63a0a", "#fbc55c"),
    ("f5", "#4f1c06", "#fff4c2"),
];

/// The size, weight and colour of a kind of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextStyle {
    /// Height of the font in pixels.
    pub size: f64,
    /// Bold rather than regular.
    pub bold: bool,
    colour: &'static str,
}

const TEXTS: [(&str, TextStyle); 6] = [
    ("name", TextStyle { size: 12.0, bold: false, colour: "ink" }),
    ("head", TextStyle { size: 14.0, bold: true, colour: "ink" }),
    ("label", TextStyle { size: 12.0, bold: false, colour: "muted" }),
    ("tick", TextStyle { size: 11.0, bold: false, colour: "muted" }),
    ("note", TextStyle { size: 11.0, bold: false, colour: "muted" }),
    ("strong", TextStyle { size: 12.0, bold: true, colour: "ink" }),
];

/// How a text of this class looks; `name` when none of its classes is a kind of text.
pub fn text(class: &str) -> TextStyle {
    let kind = |class: &str| TEXTS.iter().find(|(name, _)| *name == class).map(|&(_, style)| style);
    class.split(' ').find_map(kind).unwrap_or(TEXTS[0].1)
}

/// The family that every figure asks for first; [`crate::font`] carries it.
const FAMILY: &str = "Inter,'Helvetica Neue',Arial,'Liberation Sans',sans-serif";

/// What the classes mean, with colours as variables.
const RULES: &str = "\
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
.fig .veil{fill:currentColor;fill-opacity:.07}\
.fig .soft{fill:currentColor;fill-opacity:.45}\
.fig .dot{fill:currentColor;fill-opacity:.6}\
.fig .mark{stroke-width:2.2px;stroke-linecap:butt}\
.fig .pin{fill:currentColor;stroke:var(--fc-ink);stroke-width:1px;stroke-linejoin:round}\
.fig .fine{stroke-width:.4px}\
.fig .hollow{fill:var(--fc-paper);stroke:currentColor;stroke-width:1.5px}\
.fig .ink{color:var(--fc-ink)}\
.fig .faint{color:var(--fc-faint)}\
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
    let mut out = format!(".fig text{{font-family:{FAMILY}}}{RULES}");
    for (class, TextStyle { size, bold, colour }) in TEXTS {
        let weight = if bold { 600 } else { 400 };
        let _ = write!(
            out,
            ".fig .{class}{{font-size:{size}px;font-weight:{weight};fill:var(--fc-{colour})}}"
        );
    }
    for number in 0..COLOURS {
        let _ = write!(out, ".fig .c{number}{{color:var(--fc-c{number})}}");
    }
    for step in 0..STEPS {
        let _ = write!(out, ".fig .f{step}{{color:var(--fc-f{step})}}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(hex: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    /// Oklab (Ottosson 2020), in which distances follow what people see.
    fn oklab(rgb: [f64; 3]) -> [f64; 3] {
        let cones = times(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ],
            rgb.map(|value| value.clamp(0.0, 1.0)),
        );
        times(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ],
            cones.map(f64::cbrt),
        )
    }

    /// Full colour blindness of the three kinds (Machado, Oliveira and Fernandes 2009), and none.
    const EYES: [[[f64; 3]; 3]; 4] = [
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ];

    #[test]
    fn series_keep_apart_for_every_reader() {
        for theme in [Theme::Light, Theme::Dark] {
            let series: Vec<_> =
                (0..COLOURS).map(|n| linear(colour(&format!("c{n}"), theme).unwrap())).collect();
            for (one, a) in series.iter().enumerate() {
                for (two, b) in series.iter().enumerate().take(one) {
                    for eye in EYES {
                        let (x, y) = (oklab(times(eye, *a)), oklab(times(eye, *b)));
                        let apart: f64 = x.iter().zip(y).map(|(p, q)| (p - q).powi(2)).sum();
                        // A just noticeable difference is about 0.02.
                        assert!(apart.sqrt() > 0.065, "c{one} and c{two}, {theme:?}: {apart}");
                    }
                }
            }
        }
    }

    #[test]
    fn steps_of_the_scale_are_ordered_for_every_reader() {
        for (theme, sign) in [(Theme::Light, -1.0), (Theme::Dark, 1.0)] {
            let steps: Vec<_> =
                (0..STEPS).map(|n| linear(colour(&format!("f{n}"), theme).unwrap())).collect();
            for eye in EYES {
                for pair in steps.windows(2) {
                    let lightness = |rgb| oklab(times(eye, rgb))[0];
                    let apart = sign * (lightness(pair[1]) - lightness(pair[0]));
                    assert!(apart > 0.05, "{theme:?}: {pair:?} {apart}");
                }
            }
        }
    }

    #[test]
    fn contrast_as_the_web_guidelines_ask() {
        let luminance = |hex: &str| {
            linear(hex).iter().zip([0.2126, 0.7152, 0.0722]).map(|(a, b)| a * b).sum::<f64>()
        };
        for theme in [Theme::Light, Theme::Dark] {
            let contrast = |one: &str, two: &str| {
                let (a, b) = (
                    luminance(colour(one, theme).unwrap()) + 0.05,
                    luminance(colour(two, theme).unwrap()) + 0.05,
                );
                a.max(b) / a.min(b)
            };
            for text in ["ink", "muted", "accent"] {
                for paper in ["paper", "shade", "indoor", "outdoor"] {
                    assert!(contrast(text, paper) >= 4.5, "{text} on {paper}, {theme:?}");
                }
            }
            for shape in (0..COLOURS).map(|n| format!("c{n}")).chain(["good".into(), "bad".into()])
            {
                assert!(contrast(&shape, "paper") >= 3.0, "{shape}, {theme:?}");
            }
        }
    }

    #[test]
    fn known_schemes_keep_their_style() {
        let few = styles(&["fedcote", "mine"]);
        let many = styles(&["mine", "other", "ideal", "fedavg", "fedcote"]);
        assert_eq!(few[0], many[4]);
        assert_eq!(few[0], Style::new(0));
        let mut seen = many.clone();
        seen.dedup();
        assert_eq!(seen.len(), 5);
        assert!(KNOWN.iter().enumerate().all(|(i, a)| KNOWN[..i].iter().all(|b| a.1 != b.1)));
    }

    /// `fedcote-memory` used to have no colour of its own.
    #[test]
    fn the_schemes_compared_most_often_share_their_colour_only_with_dashed_ones() {
        for name in ["fedcote", "fedcote-memory", "fedavg", "ideal"] {
            let style = styles(&[name])[0];
            assert_eq!(style.dash(), "", "{name}");
            let others = KNOWN.iter().filter(|(other, _)| *other != name);
            assert!(others.into_iter().all(|&(_, number)| Style::new(number) != style), "{name}");
        }
    }

    #[test]
    fn one_theme_has_no_variables_left() {
        assert!(!css_of(Theme::Dark).contains("var("));
        assert!(css().contains("var(--fc-ink)"));
    }
}
