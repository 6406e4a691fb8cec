//! The font of the figures: measured for the layout, drawn as outlines where no font may be installed.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use crate::theme::TextStyle;

static REGULAR: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("../fonts/Inter-Regular.ttf"), 0).ok());
static SEMIBOLD: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("../fonts/Inter-SemiBold.ttf"), 0).ok());

/// The regular weight for web pages, WOFF2.
pub const REGULAR_WOFF2: &[u8] = include_bytes!("../fonts/Inter-Regular.woff2");
/// The bold weight for web pages, WOFF2.
pub const SEMIBOLD_WOFF2: &[u8] = include_bytes!("../fonts/Inter-SemiBold.woff2");

/// `@font-face` rules with the font inside, for pages that must work without a network.
pub fn css() -> String {
    let face = |weight: &str, bytes: &[u8]| {
        format!(
            "@font-face{{font-family:Inter;font-weight:{weight};src:url(data:font/woff2;base64,{}) format('woff2')}}",
            base64(bytes)
        )
    };
    face("400", REGULAR_WOFF2) + &face("600 700", SEMIBOLD_WOFF2)
}

/// Width of a text in pixels.
pub fn width(text: &str, style: TextStyle) -> f64 {
    let Some(face) = face(style) else { return text.chars().count() as f64 * style.size * 0.6 };
    let units: f64 = glyphs(face, text).map(|(_, advance)| advance).sum();
    units * style.size / f64::from(face.units_per_em())
}

/// The text, or as much of its beginning as fits into this many pixels, then an ellipsis.
pub fn fit(text: &str, style: TextStyle, available: f64) -> String {
    if width(text, style) <= available {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        short.push(character);
        if width(&short, style) + width("…", style) > available {
            short.pop();
            break;
        }
    }
    short.trim_end().to_owned() + "…"
}

/// SVG path commands of the text with its baseline starting at the point.
pub(crate) fn outline(text: &str, style: TextStyle, x: f64, y: f64) -> String {
    let Some(face) = face(style) else { return String::new() };
    let scale = style.size / f64::from(face.units_per_em());
    let mut pen = Pen { x, y, scale, commands: String::new() };
    for (glyph, advance) in glyphs(face, text) {
        face.outline_glyph(glyph, &mut pen);
        pen.x += advance * scale;
    }
    pen.commands
}

fn face(style: TextStyle) -> Option<&'static Face<'static>> {
    if style.bold { SEMIBOLD.as_ref() } else { REGULAR.as_ref() }
}

fn glyphs<'a>(face: &'a Face<'_>, text: &'a str) -> impl Iterator<Item = (GlyphId, f64)> + 'a {
    text.chars().map(|character| {
        let glyph = face
            .glyph_index(character)
            .or_else(|| face.glyph_index('\u{fffd}'))
            .unwrap_or(GlyphId(0));
        (glyph, f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)))
    })
}

struct Pen {
    x: f64,
    y: f64,
    scale: f64,
    commands: String,
}

impl Pen {
    fn put(&mut self, command: char, points: &[(f32, f32)]) {
        use std::fmt::Write;
        self.commands.push(command);
        for &(x, y) in points {
            let (x, y) = (self.x + f64::from(x) * self.scale, self.y - f64::from(y) * self.scale);
            let _ = write!(self.commands, "{x:.2} {y:.2} ");
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.put('M', &[(x, y)]);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.put('L', &[(x, y)]);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.put('Q', &[(x1, y1), (x, y)]);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.put('C', &[(x1, y1), (x2, y2), (x, y)]);
    }
    fn close(&mut self) {
        self.put('Z', &[]);
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|i| u32::from(chunk.get(i).copied().unwrap_or(0)));
        let bits = a << 16 | b << 8 | c;
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) as usize & 63;
            out.push(if digit <= chunk.len() { DIGITS[index] as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::text;

    #[test]
    fn base64_as_in_rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn both_weights_are_there_and_differ() {
        let (plain, bold) =
            (width("fedcote 0.95 ± 0.01 χ²", text("name")), width("fedcote", text("head")));
        assert!(REGULAR.is_some() && SEMIBOLD.is_some());
        assert!(plain > 90.0 && plain < 160.0, "{plain}");
        assert!(bold > 45.0 && bold < 75.0, "{bold}");
    }

    #[test]
    fn every_sign_of_the_figures_has_a_glyph() {
        for face in [&REGULAR, &SEMIBOLD] {
            let face = face.as_ref().unwrap();
            for sign in "αβχεκΣ²±−×≤≥→∞…·–%".chars() {
                assert!(face.glyph_index(sign).is_some(), "{sign}");
            }
        }
    }

    #[test]
    fn a_long_name_is_cut_to_its_place() {
        let style = text("name");
        let short = fit("a-very-long-name-of-a-scheme", style, 80.0);
        assert!(short.ends_with('…') && width(&short, style) <= 80.0, "{short}");
        assert_eq!(fit("short", style, 80.0), "short");
    }
}
