//! Loops over slices of model size.

/// `to += factor · from`.
pub fn add(to: &mut [f32], factor: f32, from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

/// The squared Euclidean distance, summed in f64.
pub fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

/// The difference of `model` from `origin` times `factor`, in f64: `model = origin + factor · (model − origin)`.
pub fn scale_from(origin: &[f32], model: &mut [f32], factor: f64) {
    for (model, &origin) in model.iter_mut().zip(origin) {
        let origin = f64::from(origin);
        *model = (origin + factor * (f64::from(*model) - origin)) as f32;
    }
}

/// Whether every value is a number.
pub fn finite(values: &[f32]) -> bool {
    values.iter().all(|value| value.is_finite())
}

/// The sum of `factor · model` over the terms, each taken relative to `origin` so that a mean of equal
/// models is that model exactly.
pub fn mean_change<'a>(origin: &[f32], terms: impl Iterator<Item = (f64, &'a [f32])>) -> Vec<f32> {
    let mut change = vec![0.0; origin.len()];
    for (factor, model) in terms {
        let factor = factor as f32;
        for ((change, model), origin) in change.iter_mut().zip(model).zip(origin) {
            *change += factor * (model - origin);
        }
    }
    change
}
