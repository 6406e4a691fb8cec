//! Axes: round ticks, linear or logarithmic, and how their numbers are written.

/// How the numbers of an axis are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As they are.
    Number,
    /// A share of one as a percentage.
    Percent,
}

/// A range of values with its ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis over exactly this range with about `wanted` round ticks inside it.
    pub fn linear(low: f64, high: f64, wanted: usize, format: Format) -> Self {
        let (low, high) = proper(low, high);
        let step = step(low, high, wanted);
        let ticks = ((low / step - 1e-9).ceil() as i64..=(high / step + 1e-9).floor() as i64)
            .map(|k| (k as f64 * step, write(k as f64 * step, step, format)))
            .collect();
        Self { low, high, logarithmic: false, ticks }
    }

    /// As [`Axis::linear`], the range widened to the next tick on both sides.
    pub fn rounded(low: f64, high: f64, wanted: usize, format: Format) -> Self {
        let (low, high) = proper(low, high);
        let step = step(low, high, wanted);
        let (low, high) = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
        Self::linear(low, high, wanted, format)
    }

    /// A logarithmic axis; what is not positive is drawn at its lower end.
    pub fn logarithmic(low: f64, high: f64, format: Format) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let low = if low.is_finite() && low > 0.0 && low < high { low } else { high / 10.0 };
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let decades = high.log10() - low.log10();
        let multiples: &[f64] = match decades {
            d if d > 2.5 => &[1.0],
            d if d > 1.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        };
        let every = (decades / 6.0).ceil().max(1.0) as i32;
        let ticks = (first..=last)
            .filter(|power| power.rem_euclid(every) == 0)
            .flat_map(|power| multiples.iter().map(move |m| (power, m * 10f64.powi(power))))
            .filter(|&(_, value)| value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9))
            .map(|(power, value)| {
                let plain = format == Format::Percent || decades <= 2.5;
                let unit = 10f64.powi(
                    if value > 1.4 * 10f64.powi(power) && value < 1.6 * 10f64.powi(power) {
                        power - 1
                    } else {
                        power
                    },
                );
                (value, if plain { write(value, unit, format) } else { power_of_ten(power) })
            })
            .collect();
        Self { low, high, logarithmic: true, ticks }
    }

    /// Logarithmic when the values span more than a factor of ten, else linear from `low`.
    pub fn adaptive(low: f64, high: f64, wanted: usize, format: Format) -> Self {
        if low > 0.0 && high / low > 10.0 {
            Self::logarithmic(low * 0.9, high * 1.1, format)
        } else {
            Self::rounded(low, high, wanted, format)
        }
    }

    /// With one more tick, the last one.
    pub fn with_tick(mut self, value: f64, text: &str) -> Self {
        self.ticks.retain(|(at, _)| *at < value);
        self.ticks.push((value, text.to_owned()));
        self
    }

    /// Both ends.
    pub fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Values and their texts, ascending.
    pub fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }

    /// Where the value is between `from` (low end) and `to` (high end); outside values are at the ends.
    pub fn place(&self, value: f64, from: f64, to: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        from + share.clamp(0.0, 1.0) * (to - from)
    }
}

/// A number with as many decimals as a step of this size needs, and a true minus sign.
fn write(value: f64, step: f64, format: Format) -> String {
    let factor = if format == Format::Percent { 100.0 } else { 1.0 };
    let (value, step) = (value * factor, step * factor);
    let sign = if format == Format::Percent { "%" } else { "" };
    if value != 0.0 && value.abs() < 1e-4 || step >= 1e6 {
        return format!("{value:.1e}{sign}").replace('-', "−");
    }
    let whole = |decimals: &i32| {
        let scaled = step * 10f64.powi(*decimals);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    };
    let decimals = (0..12).find(whole).unwrap_or(0) as usize;
    format!("{:.decimals$}{sign}", value + 0.0).replace('-', "−")
}

fn power_of_ten(power: i32) -> String {
    match power {
        0 => return "1".into(),
        1 => return "10".into(),
        _ => {}
    }
    let power = power.to_string();
    let digits = power.chars().map(|character| match character {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    });
    format!("10{}", digits.collect::<String>())
}

/// The round step (1, 2, 2.5 or 5 times a power of ten) that gives about this many ticks.
fn step(low: f64, high: f64, wanted: usize) -> f64 {
    let rough = (high - low) / wanted.max(1) as f64;
    let unit = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|f| f * unit >= rough * 0.999);
    factor.unwrap_or(10.0) * unit
}

/// A range that has a width, whatever came in.
fn proper(low: f64, high: f64) -> (f64, f64) {
    let low = if low.is_finite() { low } else { 0.0 };
    let high = if high.is_finite() { high } else { low + 1.0 };
    if high - low > 1e-12 * low.abs().max(high.abs()).max(1e-300) {
        return (low, high);
    }
    let room = if low == 0.0 { 1.0 } else { low.abs() / 10.0 };
    (low - if low == 0.0 { 0.0 } else { room }, low + room)
}

/// A range of shares, widened to two points of percent: a narrower one would make noise look like a difference.
pub fn two_points(low: f64, high: f64) -> (f64, f64) {
    let span = high - low;
    if span.is_nan() || span < 0.0 {
        return (low, high);
    }
    let room = (0.02 - span).max(0.0) / 2.0;
    ((low - room).max(low.min(0.0)), (high + room).min(high.max(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks().iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            texts(&Axis::linear(1.0, 500.0, 5, Format::Number)),
            ["100", "200", "300", "400", "500"]
        );
        assert_eq!(
            texts(&Axis::rounded(0.11, 0.93, 5, Format::Percent)),
            ["0%", "20%", "40%", "60%", "80%", "100%"]
        );
        assert_eq!(
            texts(&Axis::rounded(-0.05, 0.05, 4, Format::Number)),
            ["−0.050", "−0.025", "0.000", "0.025", "0.050"]
        );
        assert_eq!(
            texts(&Axis::linear(0.9, 0.96, 3, Format::Percent)),
            ["90%", "92%", "94%", "96%"]
        );
    }

    #[test]
    fn decades_are_powers_or_plain() {
        assert_eq!(
            texts(&Axis::logarithmic(1e-4, 10.0, Format::Number)),
            ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1", "10"]
        );
        assert_eq!(
            texts(&Axis::logarithmic(0.1, 3.0, Format::Number)),
            ["0.1", "0.2", "0.5", "1", "2"]
        );
        assert_eq!(texts(&Axis::logarithmic(0.2, 0.6, Format::Number)), ["0.2", "0.3", "0.5"]);
    }

    #[test]
    fn places_are_proportional_and_stay_inside() {
        let axis = Axis::linear(0.0, 10.0, 5, Format::Number);
        assert_eq!(axis.place(5.0, 100.0, 0.0), 50.0);
        assert_eq!(axis.place(50.0, 100.0, 0.0), 0.0);
        let axis = Axis::logarithmic(1.0, 100.0, Format::Number);
        assert!((axis.place(10.0, 0.0, 1.0) - 0.5).abs() < 1e-12);
        assert_eq!(axis.place(-1.0, 0.0, 1.0), 0.0);
    }

    #[test]
    fn odd_ranges_still_make_an_axis() {
        for (low, high) in [
            (1.0, 1.0),
            (0.0, 0.0),
            (f64::NAN, f64::NAN),
            (3.0, -1.0),
            (1e300, f64::INFINITY),
            (-2.0, -2.0),
        ] {
            for axis in [
                Axis::rounded(low, high, 5, Format::Number),
                Axis::adaptive(low, high, 5, Format::Number),
                Axis::logarithmic(low, high, Format::Percent),
            ] {
                let (low, high) = axis.range();
                assert!(low < high, "{axis:?}");
                assert!(!axis.ticks().is_empty() && axis.ticks().len() < 30, "{axis:?}");
            }
        }
    }

    /// An axis of the report was once zoomed to 0.2 points.
    #[test]
    fn shares_are_not_zoomed_into_noise() {
        let near = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() + (b - d).abs() < 1e-12;
        assert!(near(two_points(0.9, 0.902), (0.891, 0.911)));
        assert!(near(two_points(0.2, 0.5), (0.2, 0.5)));
        assert!(near(two_points(0.999, 1.0), (0.9895, 1.0)));
        assert!(near(two_points(0.0, 0.0), (0.0, 0.01)));
        assert_eq!(
            two_points(f64::INFINITY, f64::NEG_INFINITY),
            (f64::INFINITY, f64::NEG_INFINITY)
        );
    }
}
