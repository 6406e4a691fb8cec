//! Sums with twice the digits of `f64`, for differences of running sums.
//!
//! Error-free transformations: T. J. Dekker, Numer. Math. 18, 1971; T. Ogita, S. M. Rump and S. Oishi, *Accurate
//! sum and dot product*, SIAM J. Sci. Comput. 26, 2005.

/// An unevaluated sum of two numbers, the second below the rounding error of the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pair {
    pub high: f64,
    pub low: f64,
}

impl Pair {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let (sum, error) = two_sum(self.high, value);
        self.renormalise(sum, error + self.low);
    }

    /// Adds the product of a pair and a number.
    #[inline]
    pub fn add_product(&mut self, factor: Pair, value: f64) {
        let (product, lost) = two_product(factor.high, value);
        let (sum, error) = two_sum(self.high, product);
        self.renormalise(sum, error + (self.low + (lost + factor.low * value)));
    }

    #[inline]
    fn renormalise(&mut self, high: f64, low: f64) {
        self.high = high + low;
        self.low = low - (self.high - high);
    }
}

/// The rounded sum and its rounding error.
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// The rounded product and its rounding error, for factors below 1e290.
#[inline]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let split = |x: f64| {
        let wide = 134_217_729.0 * x; // 2^27 + 1
        let high = wide - (wide - x);
        (high, x - high)
    };
    let product = a * b;
    let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
    let error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
    (product, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_sums_keep_what_rounding_drops() {
        // Against whole-number arithmetic.
        let (a, b) = (134_217_731.0, 94_906_267.0);
        let exact = 134_217_731_i128 * 94_906_267_i128;
        let (product, error) = two_product(a, b);
        assert_eq!(product as i128 + error as i128, exact);
        assert_ne!(error, 0.0);

        let mut sum = Pair::default();
        for value in [1e16, 1.0, 0.5f64.powi(40), -1e16, -1.0] {
            sum.add(value);
        }
        assert_eq!(sum.high, 0.5f64.powi(40));

        let third = Pair { high: 1.0 / 3.0, low: 0.0 };
        let mut difference = Pair::default();
        difference.add_product(third, 1e8 + 0.1);
        difference.add_product(third, -1e8);
        let step = (1e8 + 0.1) - 1e8; // exact
        assert!((difference.high / (step / 3.0) - 1.0).abs() < 1e-15);
    }
}
