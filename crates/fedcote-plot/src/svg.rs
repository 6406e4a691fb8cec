//! A small SVG builder: shapes take a class, [`crate::theme`] says what the class looks like.
//!
//! Nothing here knows a colour, so that one drawing serves light and dark, page and print.

use std::fmt::{self, Write};

use crate::font;
use crate::theme::{self, Theme};

/// Where a text is anchored horizontally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins at the point.
    Start,
    /// The text is centred on the point.
    Middle,
    /// The text ends at the point.
    End,
}

/// A rectangle on the drawing, in pixels, y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Top edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// Bottom edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    /// The rectangle left after taking these margins away; never of negative size.
    pub fn inset(&self, top: f64, right: f64, bottom: f64, left: f64) -> Self {
        Self {
            x: self.x + left,
            y: self.y + top,
            width: (self.width - left - right).max(0.0),
            height: (self.height - top - bottom).max(0.0),
        }
    }
}

/// A drawing with a title and a description for those who cannot see it.
///
/// ```
/// use fedcote_plot::svg::{Anchor, Svg};
/// let mut svg = Svg::new(200.0, 100.0, "Two clients", "Client 1 is drawn twice as often as client 2.");
/// svg.rect(10.0, 10.0, 20.0, 80.0, "fill c0");
/// svg.titled("c1", "client 2: 0.33", |svg| svg.rect(40.0, 50.0, 20.0, 40.0, "fill"));
/// svg.text(20.0, 98.0, Anchor::Middle, "tick", "a < b");
/// assert!(svg.document().contains("a &lt; b"));
/// ```
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    title: String,
    description: String,
    body: String,
    texts: Vec<Text>,
}

/// Around figures in files of their own, in pixels.
const MARGIN: f64 = 12.0;

/// A text and the place of its mark in the body; kept apart so that it can become outlines.
#[derive(Clone, Debug)]
struct Text {
    at: usize,
    x: f64,
    y: f64,
    degrees: f64,
    anchor: Anchor,
    class: String,
    text: String,
}

impl Svg {
    /// An empty drawing of this size in pixels.
    pub fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        Self {
            width,
            height,
            title: title.to_owned(),
            description: description.to_owned(),
            body: String::new(),
            texts: Vec::new(),
        }
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }

    /// The title that screen readers announce.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The description that screen readers read out.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// A filled or outlined rectangle, as its class says.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        self.shape(
            "rect",
            class,
            &[("x", x), ("y", y), ("width", width.max(0.0)), ("height", height.max(0.0))],
        );
    }

    /// A straight line.
    pub fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, class: &str) {
        self.shape("line", class, &[("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)]);
    }

    /// A disc or ring.
    pub fn circle(&mut self, x: f64, y: f64, radius: f64, class: &str) {
        self.shape("circle", class, &[("cx", x), ("cy", y), ("r", radius.max(0.0))]);
    }

    /// A line through the points; nothing when there are fewer than two.
    pub fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        if points.len() > 1 {
            self.path(&path(points), class);
        }
    }

    /// A closed shape through the points; nothing when there are fewer than three.
    pub fn polygon(&mut self, points: &[(f64, f64)], class: &str) {
        if points.len() > 2 {
            self.path(&(path(points) + "Z"), class);
        }
    }

    /// A path given by its SVG commands (see [`path`]).
    pub fn path(&mut self, commands: &str, class: &str) {
        let _ = write!(self.body, r#"<path class="{}" d="{commands}"/>"#, Escaped(class));
    }

    /// A text on one line; `y` is its baseline.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        self.text_turned(x, y, 0.0, anchor, class, text);
    }

    /// A text turned clockwise by this many degrees around its anchor.
    pub fn text_turned(
        &mut self,
        x: f64,
        y: f64,
        degrees: f64,
        anchor: Anchor,
        class: &str,
        text: &str,
    ) {
        let (class, text, at) = (class.to_owned(), text.to_owned(), self.body.len());
        self.texts.push(Text { at, x, y, degrees, anchor, class, text });
    }

    /// A group of shapes that share a class.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.body, r#"<g class="{}">"#, Escaped(class));
        draw(self);
        self.body.push_str("</g>");
    }

    /// A group that shows a text when the pointer rests on it.
    pub fn titled(&mut self, class: &str, title: &str, draw: impl FnOnce(&mut Self)) {
        let _ =
            write!(self.body, r#"<g class="{}"><title>{}</title>"#, Escaped(class), Escaped(title));
        draw(self);
        self.body.push_str("</g>");
    }

    /// A [`titled`](Self::titled) group that stands for a client of this name: a report shows more when it is clicked.
    pub fn client(&mut self, id: &str, title: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(
            self.body,
            r#"<g data-client="{}"><title>{}</title>"#,
            Escaped(id),
            Escaped(title)
        );
        draw(self);
        self.body.push_str("</g>");
    }

    /// The `<svg>` element for a page that carries [`theme::css`] itself.
    pub fn inline(&self) -> String {
        self.element("", Text::element)
    }

    /// A file of its own, which follows the reader's preference for light or dark.
    pub fn document(&self) -> String {
        self.element(&theme::css(), Text::element)
    }

    /// A file of its own in one theme, with plain colours and with texts as outlines: it looks the same in
    /// programs that know no CSS variables, and on machines without fonts.
    pub fn themed(&self, theme: Theme) -> String {
        self.element(&theme::css_of(theme), Text::outline)
    }

    fn element(&self, style: &str, write_text: fn(&Text, &mut String)) -> String {
        let mut body = String::with_capacity(self.body.len() + 96 * self.texts.len());
        let mut done = 0;
        for text in &self.texts {
            body.push_str(&self.body[done..text.at]);
            write_text(text, &mut body);
            done = text.at;
        }
        body.push_str(&self.body[done..]);
        // Ids must differ between the figures of a page, and not between two runs of the program.
        let id = fingerprint(&[&self.title, &self.description, &body]);
        // A file of its own has a margin; on a page, the page has.
        let margin = if style.is_empty() { 0.0 } else { MARGIN };
        let (width, height) = (N(self.width + 2.0 * margin), N(self.height + 2.0 * margin));
        let corner = N(-margin);
        let mut out = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="fig" viewBox="{corner} {corner} {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="t{id:x} d{id:x}"><title id="t{id:x}">{}</title><desc id="d{id:x}">{}</desc>"#,
            Escaped(&self.title),
            Escaped(&self.description),
        );
        if !style.is_empty() {
            let _ = write!(out, "<style>{style}</style>");
            let _ = write!(
                out,
                r#"<rect class="paper" x="{corner}" y="{corner}" width="{width}" height="{height}"/>"#
            );
        }
        out.push_str(&body);
        out.push_str("</svg>");
        out
    }

    fn shape(&mut self, name: &str, class: &str, numbers: &[(&str, f64)]) {
        let _ = write!(self.body, r#"<{name} class="{}""#, Escaped(class));
        for &(key, value) in numbers {
            let _ = write!(self.body, r#" {key}="{}""#, N(value));
        }
        self.body.push_str("/>");
    }
}

impl Text {
    fn element(&self, out: &mut String) {
        let Self { x, y, class, text, .. } = self;
        let _ = write!(out, r#"<text class="{}" x="{}" y="{}""#, Escaped(class), N(*x), N(*y));
        match self.anchor {
            Anchor::Start => {}
            Anchor::Middle => out.push_str(r#" text-anchor="middle""#),
            Anchor::End => out.push_str(r#" text-anchor="end""#),
        }
        self.turn(out);
        let _ = write!(out, ">{}</text>", Escaped(text));
    }

    fn outline(&self, out: &mut String) {
        let Self { x, y, class, text, .. } = self;
        let style = theme::text(class);
        let back = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => font::width(text, style) / 2.0,
            Anchor::End => font::width(text, style),
        };
        let _ = write!(out, r#"<path class="text {}""#, Escaped(class));
        self.turn(out);
        let _ = write!(out, r#" d="{}"/>"#, font::outline(text, style, x - back, *y));
    }

    fn turn(&self, out: &mut String) {
        if self.degrees != 0.0 {
            let (degrees, x, y) = (N(self.degrees), N(self.x), N(self.y));
            let _ = write!(out, r#" transform="rotate({degrees} {x} {y})""#);
        }
    }
}

/// Path commands that join the points by straight lines.
pub fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::with_capacity(points.len() * 10);
    for (index, &(x, y)) in points.iter().enumerate() {
        out.push(if index == 0 { 'M' } else { 'L' });
        let _ = write!(out, "{} {}", N(x), N(y));
    }
    out
}

/// A text made safe for element content and quoted attributes, in SVG and HTML alike.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                '\n' | '\t' => formatter.write_char(character)?,
                // XML has no way to write the other control characters.
                control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                    formatter.write_char('\u{fffd}')?;
                }
                plain => formatter.write_char(plain)?,
            }
        }
        Ok(())
    }
}

/// A coordinate: a tenth of a pixel is finer than the eye, and short numbers keep files small.
struct N(f64);

impl fmt::Display for N {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = if self.0.is_finite() { (self.0 * 10.0).round() } else { 0.0 };
        if tenths % 10.0 == 0.0 {
            // Adding zero turns -0 into 0.
            write!(formatter, "{}", tenths / 10.0 + 0.0)
        } else {
            write!(formatter, "{:.1}", tenths / 10.0)
        }
    }
}

/// FNV-1a.
fn fingerprint(texts: &[&str]) -> u64 {
    texts
        .iter()
        .flat_map(|text| text.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_wrong() {
        let shown =
            [1.0, -0.04, 2.25, 1e3, f64::NAN, f64::INFINITY, -3.06].map(|v| N(v).to_string());
        assert_eq!(shown, ["1", "0", "2.3", "1000", "0", "0", "-3.1"]);
    }

    #[test]
    fn hostile_text_stays_text() {
        let text = "<script>alert('x')</script>&\"\u{0}";
        assert_eq!(
            Escaped(text).to_string(),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}"
        );
    }

    #[test]
    fn figures_of_a_page_have_ids_of_their_own() {
        let (one, two) = (Svg::new(1.0, 1.0, "a", "b"), Svg::new(1.0, 1.0, "a", "c"));
        let id = |svg: &Svg| svg.inline().split("aria-labelledby").nth(1).unwrap()[..20].to_owned();
        assert_ne!(id(&one), id(&two));
        assert_eq!(id(&one), id(&one.clone()));
    }
}
