//! Cross-entropy.

/// The mean over samples of −ln p, p being what softmax gives the label.
///
/// Each row of logits is replaced by its share of the gradient of the *mean*: (softmax − one-hot) / samples.
pub fn cross_entropy(logits: &mut [f32], labels: &[u8], classes: usize) -> f32 {
    let scale = 1.0 / labels.len() as f32;
    let mut sum = 0.0_f64;
    for (row, &label) in logits.chunks_exact_mut(classes).zip(labels) {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let own = row[usize::from(label)] - top;
        let mut total = 0.0;
        for value in row.iter_mut() {
            *value = (*value - top).exp();
            total += *value;
        }
        sum += f64::from(total.ln() - own);
        let factor = scale / total;
        for value in row.iter_mut() {
            *value *= factor;
        }
        row[usize::from(label)] -= scale;
    }
    (sum * f64::from(scale)) as f32
}

/// Each sample's cross-entropy and the class with the highest logit, the first of equals.
pub fn sample_losses<'a>(
    logits: &'a [f32],
    labels: &'a [u8],
    classes: usize,
) -> impl Iterator<Item = (f32, usize)> + 'a {
    logits.chunks_exact(classes).zip(labels).map(|(row, &label)| {
        let mut best = 0;
        for (class, &value) in row.iter().enumerate() {
            if value > row[best] {
                best = class;
            }
        }
        let total: f32 = row.iter().map(|value| (value - row[best]).exp()).sum();
        (total.ln() - (row[usize::from(label)] - row[best]), best)
    })
}
