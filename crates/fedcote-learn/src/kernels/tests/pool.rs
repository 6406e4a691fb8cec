use super::*;
use crate::kernels::{
    Path, dense,
    pool::{self, Layout, pooled},
    sparse::Panels,
};

/// max(0, bias + the largest of 2×2 pixels), and the index of that pixel where the value is positive.
fn reference(plane: Plane, z: &[f64], bias: &[f64]) -> Vec<(f64, Option<usize>)> {
    let (small, n) = (pooled(plane), plane.channels);
    (0..z.len() / plane.dense() * small.dense())
        .map(|i| {
            let (image, pixel, k) = (i / small.dense(), i % small.dense() / n, i % n);
            let (row, column) = (2 * (pixel / small.width), 2 * (pixel % small.width));
            let at = |a, b| image * plane.dense() + ((row + a) * plane.width + column + b) * n + k;
            let four = [at(0, 0), at(0, 1), at(1, 0), at(1, 1)];
            let best = four.into_iter().reduce(|a, b| if z[b] > z[a] { b } else { a }).unwrap();
            let value = z[best] + bias[k];
            if value > 0.0 { (value, Some(best)) } else { (0.0, None) }
        })
        .collect()
}

#[test]
fn pooling_and_its_gradient_are_their_definition_on_every_path() {
    for (height, width, channels) in [(4, 6, 16), (5, 7, 32), (2, 3, 48), (28, 28, 16)] {
        let plane = Plane { height, width, channels };
        let small = pooled(plane);
        let images = 3;
        let (z, bias) = (values(1, images * plane.dense()), values(2, channels));
        let slopes = values(3, images * small.dense());
        let expected = reference(plane, &wide(&z), &wide(&bias));
        let mut expected_dz = vec![0.0; z.len()];
        let mut expected_bias = vec![0.0; channels];
        for ((i, (_, from)), &slope) in expected.iter().enumerate().zip(&slopes) {
            if let Some(from) = *from {
                expected_dz[from] = slope;
                expected_bias[i % channels] += f64::from(slope);
            }
        }
        for path in Path::supported() {
            let mut y = vec![0.0; images * small.padded()];
            let mut choices = vec![9; images * small.dense()];
            pool::forward(path, plane, &z, &bias, Layout::padded(small), &mut y, &mut choices);
            let found = interior(small, &y);
            assert!(
                found
                    .iter()
                    .zip(&expected)
                    .all(|(y, (value, _))| (f64::from(*y) - value).abs() < 1e-6)
            );
            // The same into rows with room between them.
            let room = small.dense() + 16;
            let mut rows = vec![f32::NAN; images * room];
            let layout = Layout::dense(small, room);
            pool::forward(path, plane, &z, &bias, layout, &mut rows, &mut choices);
            let rows: Vec<f32> =
                rows.chunks(room).flat_map(|row| row[..small.dense()].to_vec()).collect();
            assert_eq!(rows, found);
            let mut dz = vec![0.0; images * plane.padded()];
            let mut of_bias = vec![0.0; channels];
            let dense = Layout::dense(small, small.dense());
            pool::backward(path, plane, dense, &slopes, &choices, &mut dz, &mut of_bias);
            assert_eq!(interior(plane, &dz), expected_dz, "{path:?} {plane:?}");
            assert!(distance(&of_bias, &expected_bias) < 1e-5);
        }
    }
}

#[test]
fn dense_products_are_their_definition_on_every_path() {
    for (samples, depth, columns) in [(1, 1, 1), (13, 40, 10), (5, 300, 33), (24, 129, 64)] {
        let (x, w) = (values(1, samples * depth), values(2, depth * columns));
        let y = values(3, samples * columns);
        let spaced = |dense: &[f32], columns: usize| {
            let mut rows = vec![0.0; samples * dense::stride(columns)];
            for (row, from) in rows.chunks_mut(dense::stride(columns)).zip(dense.chunks(columns)) {
                row[..columns].copy_from_slice(from);
            }
            rows
        };
        let cell = |r: usize, c: usize| {
            let terms =
                (0..depth).map(|k| f64::from(x[r * depth + k]) * f64::from(w[k * columns + c]));
            f64::from(y[r * columns + c]) + terms.sum::<f64>()
        };
        let expected: Vec<f64> =
            (0..samples * columns).map(|i| cell(i / columns, i % columns)).collect();
        let outer = |k: usize, c: usize| -> f64 {
            (0..samples).map(|r| f64::from(x[r * depth + k]) * f64::from(y[r * columns + c])).sum()
        };
        let expected_outer: Vec<f64> =
            (0..depth * columns).map(|i| outer(i / columns, i % columns)).collect();
        for path in Path::supported() {
            let mut panels = Panels::new(depth, columns);
            panels.pack(&w);
            let mut found = spaced(&y, columns);
            dense::product(path, samples, &spaced(&x, depth), &panels, &mut found);
            let found: Vec<f32> = found
                .chunks(dense::stride(columns))
                .flat_map(|row| row[..columns].to_vec())
                .collect();
            assert!(distance(&found, &expected) < 1e-6, "{path:?}");
            dense::outer_product(
                path,
                samples,
                &spaced(&x, depth),
                &spaced(&y, columns),
                &mut panels,
            );
            let mut found = vec![f32::NAN; depth * columns];
            panels.unpack(&mut found);
            assert!(distance(&found, &expected_outer) < 1e-6, "{path:?}");
        }
    }
}
