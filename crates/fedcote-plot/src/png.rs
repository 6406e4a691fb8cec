//! PNG files of figures.

use resvg::{tiny_skia, usvg};

use crate::Error;
use crate::svg::Svg;
use crate::theme::Theme;

/// The figure as a PNG file, `scale` pixels of the image for each pixel of the drawing.
pub fn png(svg: &Svg, theme: Theme, scale: f32) -> Result<Vec<u8>, Error> {
    let failed = |reason: String| Error::Image { title: svg.title().to_owned(), reason };
    let tree = usvg::Tree::from_str(&svg.themed(theme), &usvg::Options::default())
        .map_err(|error| failed(error.to_string()))?;
    let size = tree.size();
    let (width, height) = ((size.width() * scale).ceil(), (size.height() * scale).ceil());
    let mut image = tiny_skia::Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| failed(format!("{width} × {height} pixels are no image")))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut image.as_mut());
    image.encode_png().map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::Anchor;

    fn pixels(svg: &Svg, theme: Theme) -> Vec<[u8; 3]> {
        let image = tiny_skia::Pixmap::decode_png(&png(svg, theme, 1.0).unwrap()).unwrap();
        image.pixels().iter().map(|p| [p.red(), p.green(), p.blue()]).collect()
    }

    #[test]
    fn texts_and_colours_are_there_without_any_font_installed() {
        let mut svg = Svg::new(100.0, 20.0, "t", "d");
        let empty = pixels(&svg, Theme::Light);
        assert!(empty.iter().all(|pixel| *pixel == [255, 255, 255]));
        svg.text(50.0, 14.0, Anchor::Middle, "name", "fedcote ±");
        let dark = pixels(&svg, Theme::Light).iter().filter(|pixel| pixel[0] < 160).count();
        assert!(dark > 100, "{dark} dark pixels");
        let mut svg = Svg::new(10.0, 10.0, "t", "d");
        let middle = 34 * 17 + 17; // ten pixels and a margin of twelve on each side
        svg.group("c1", |svg| svg.rect(0.0, 0.0, 10.0, 10.0, "fill"));
        assert_eq!(pixels(&svg, Theme::Light)[middle], [0xd5, 0x5e, 0x00]);
        assert_eq!(pixels(&svg, Theme::Dark)[middle], [0xf0, 0x70, 0x30]);
    }
}
