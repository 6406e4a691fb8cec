use super::*;
use crate::kernels::{
    Path,
    group_norm::{self, EPSILON, Shortcut},
};

/// max(0, normalised · scale + shift + shortcut), by definition.
fn reference(
    plane: Plane,
    groups: usize,
    z: &[f64],
    scale: &[f64],
    shift: &[f64],
    shortcut: &[f64],
) -> Vec<f64> {
    let each = plane.channels / groups;
    let mut y = Vec::new();
    for (image, z) in z.chunks_exact(plane.dense()).enumerate() {
        let group = |index: usize| index % plane.channels / each;
        for (i, value) in z.iter().enumerate() {
            let of_group: Vec<f64> =
                (0..z.len()).filter(|&k| group(k) == group(i)).map(|k| z[k]).collect();
            let mean = of_group.iter().sum::<f64>() / of_group.len() as f64;
            let variance =
                of_group.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / of_group.len() as f64;
            let channel = i % plane.channels;
            let normalised = (value - mean) / (variance + EPSILON).sqrt();
            let value = normalised * scale[channel] + shift[channel];
            y.push((value + shortcut[image * plane.dense() + i]).max(0.0));
        }
    }
    y
}

const CASES: [([usize; 3], usize); 4] =
    [([3, 2, 16], 2), ([1, 3, 32], 8), ([2, 2, 64], 2), ([5, 1, 16], 1)];

#[test]
fn forward_is_its_definition_on_every_path() {
    for ([height, width, channels], groups) in CASES {
        let plane = Plane { height, width, channels };
        let size = 2 * plane.dense();
        // A mean far from zero, where a careless variance would lose its digits.
        let z: Vec<f32> = values(1, size).iter().map(|z| 30.0 + z).collect();
        let (scale, shift) = (values(2, channels), values(3, channels));
        let shortcut = values(4, size);
        let call = |shortcut: &[f64]| {
            reference(plane, groups, &wide(&z), &wide(&scale), &wide(&shift), shortcut)
        };
        let expected = call(&wide(&shortcut));
        let bare = call(&vec![0.0; size]);
        for path in Path::supported() {
            let mut moments = vec![[0.0; 2]; 2 * groups];
            let mut y = padded(plane, &shortcut);
            let from = y.clone();
            let mut run = |shortcut: Shortcut, y: &mut [f32]| {
                group_norm::forward(path, plane, &z, &scale, &shift, shortcut, &mut moments, y);
            };
            run(Shortcut::InPlace, &mut y);
            assert!(distance(&interior(plane, &y), &expected) < 1e-5, "{path:?} {plane:?}");
            let mut other = vec![0.0; y.len()];
            run(Shortcut::From(&from), &mut other);
            assert_eq!(y, other);
            run(Shortcut::None, &mut y);
            assert!(distance(&interior(plane, &y), &bare) < 1e-5, "{path:?} {plane:?}");
        }
    }
}

#[test]
fn backward_is_finite_differences_of_the_definition() {
    for ([height, width, channels], groups) in CASES {
        let plane = Plane { height, width, channels };
        let size = 2 * plane.dense();
        let z = values(1, size);
        let (scale, shift) = (values(2, channels), values(3, channels));
        let shortcut = values(4, size);
        let slope = values(5, size);
        let wide_slope = wide(&slope);
        let [a, b, c, d] = [&z, &scale, &shift, &shortcut].map(|values| wide(values));
        let loss = |z: &[f64], scale: &[f64], shift: &[f64], shortcut: &[f64]| -> f64 {
            let y = reference(plane, groups, z, scale, shift, shortcut);
            y.iter().zip(&wide_slope).map(|(y, slope)| y * slope).sum()
        };
        let expected = [
            differences(&a, |a| loss(a, &b, &c, &d)),
            differences(&b, |b| loss(&a, b, &c, &d)),
            differences(&c, |c| loss(&a, &b, c, &d)),
            differences(&d, |d| loss(&a, &b, &c, d)),
        ];
        for path in Path::supported() {
            let mut moments = vec![[0.0; 2]; 2 * groups];
            let mut y = padded(plane, &shortcut);
            let kind = Shortcut::InPlace;
            group_norm::forward(path, plane, &z, &scale, &shift, kind, &mut moments, &mut y);
            let (mut of_scale, mut of_shift) = (vec![0.0; channels], vec![0.0; channels]);
            let mut of_shortcut = slope.clone();
            let mut dz = vec![0.0; y.len()];
            group_norm::backward(
                path,
                plane,
                &z,
                &scale,
                &moments,
                &y,
                &mut of_shortcut,
                &mut of_scale,
                &mut of_shift,
                &mut dz,
            );
            let found = [interior(plane, &dz), of_scale, of_shift, of_shortcut];
            for (part, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let error = distance(found, expected);
                assert!(error < 2e-6, "{path:?} {plane:?} part {part}: {error}");
            }
        }
    }
}
