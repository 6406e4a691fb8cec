use super::*;
use crate::kernels::{
    Path,
    conv3x3::{self, Convolution},
    winograd,
};

/// The convolution's definition.
fn reference(c: Convolution, x: &[f64], w: &[f64]) -> Vec<f64> {
    let (input, output) = (c.input, c.output());
    let images = x.len() / input.dense();
    let mut y = vec![0.0; images * output.dense()];
    for (pixel, y) in y.chunks_exact_mut(c.outputs).enumerate() {
        let (image, pixel) =
            (pixel / (output.height * output.width), pixel % (output.height * output.width));
        let (i, j) = (pixel / output.width, pixel % output.width);
        for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
            let (row, column) = (c.stride * i + a, c.stride * j + b);
            if row < 1 || row > input.height || column < 1 || column > input.width {
                continue;
            }
            let at = ((image * input.height + row - 1) * input.width + column - 1) * input.channels;
            for k in 0..input.channels {
                let w = &w[((3 * a + b) * input.channels + k) * c.outputs..][..c.outputs];
                y.iter_mut().zip(w).for_each(|(y, w)| *y += x[at + k] * w);
            }
        }
    }
    y
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn convolution(size: [usize; 2], channels: [usize; 2], stride: usize) -> Convolution {
    let input = Plane { height: size[0], width: size[1], channels: channels[0] };
    Convolution { input, outputs: channels[1], stride }
}

#[test]
fn direct_convolution_is_its_definition_on_every_path() {
    let cases = [
        convolution([5, 7], [3, 16], 1),
        convolution([9, 6], [1, 48], 1),
        convolution([8, 13], [16, 32], 2),
        convolution([7, 7], [32, 16], 2),
        convolution([6, 5], [16, 16], 1),
        convolution([1, 1], [16, 16], 2),
    ];
    for c in cases {
        let (x, w) = (values(1, 3 * c.input.dense()), values(2, c.weights()));
        let expected = reference(c, &wide(&x), &wide(&w));
        for path in Path::supported() {
            let mut y = vec![f32::NAN; expected.len()];
            conv3x3::forward(path, c, &padded(c.input, &x), &w, &mut y);
            assert!(distance(&y, &expected) < 1e-6, "{path:?} {c:?}");
        }
    }
}

#[test]
fn direct_gradients_are_finite_differences_of_the_definition() {
    let cases = [
        convolution([3, 4], [16, 16], 1),
        convolution([5, 4], [16, 32], 2),
        convolution([4, 7], [16, 16], 2),
        convolution([3, 5], [3, 16], 1),
    ];
    for c in cases {
        let (x, w) = (values(1, 2 * c.input.dense()), values(2, c.weights()));
        let (wide_x, wide_w) = (wide(&x), wide(&w));
        let dy = values(3, 2 * c.output().dense());
        let wide_dy = wide(&dy);
        let expected_x = differences(&wide_x, |x| dot(&reference(c, x, &wide_w), &wide_dy));
        let expected_w = differences(&wide_w, |w| dot(&reference(c, &wide_x, w), &wide_dy));
        for path in Path::supported() {
            let (x, dy) = (padded(c.input, &x), padded(c.output(), &dy));
            let mut dw = vec![0.0; w.len()];
            conv3x3::weight_gradient(path, c, &x, &dy, &mut dw);
            assert!(distance(&dw, &expected_w) < 1e-6, "{path:?} {c:?}");
            if c.input.channels.is_multiple_of(16) {
                let mut transposed = vec![0.0; w.len()];
                conv3x3::transpose(c, &w, &mut transposed);
                let mut dx = vec![f32::NAN; expected_x.len()];
                conv3x3::input_gradient(path, c, &dy, &transposed, &mut dx);
                assert!(distance(&dx, &expected_x) < 1e-6, "{path:?} {c:?}");
            }
        }
    }
}

#[test]
fn winograd_is_the_definition_on_every_path_and_size() {
    let sizes = [[4, 4], [8, 12], [5, 7], [1, 1], [6, 9], [3, 2], [28, 28]];
    for (size, channels) in sizes.into_iter().zip([[16, 16], [16, 32], [32, 64]].iter().cycle()) {
        let c = convolution(size, *channels, 1);
        let images = if size[0] > 20 { 2 } else { 7 };
        let (x, w) = (values(1, images * c.input.dense()), values(2, c.weights()));
        let before = values(3, images * c.output().dense());
        let mut expected = reference(c, &wide(&x), &wide(&w));
        for path in Path::supported() {
            let mut transformed = vec![f32::NAN; winograd::transformed(c)];
            winograd::transform_weights(path, &w, false, &mut transformed);
            let mut scratch = vec![f32::NAN; winograd::scratch(c)];
            let mut y = vec![f32::NAN; expected.len()];
            let x = padded(c.input, &x);
            winograd::forward(path, c, &x, &transformed, &mut y, false, &mut scratch);
            assert!(distance(&y, &expected) < 5e-6, "{path:?} {c:?}");
            y.copy_from_slice(&before);
            winograd::forward(path, c, &x, &transformed, &mut y, true, &mut scratch);
            expected.iter_mut().zip(&before).for_each(|(sum, &value)| *sum += f64::from(value));
            assert!(distance(&y, &expected) < 5e-6, "{path:?} {c:?}, added");
            expected.iter_mut().zip(&before).for_each(|(sum, &value)| *sum -= f64::from(value));
        }
    }
}

#[test]
fn winograd_gradients_are_finite_differences_of_the_definition() {
    for (size, channels) in [([4, 4], [16, 16]), ([5, 3], [16, 32]), ([2, 6], [32, 16])] {
        let c = convolution(size, channels, 1);
        let (x, w) = (values(1, 2 * c.input.dense()), values(2, c.weights()));
        let (wide_x, wide_w) = (wide(&x), wide(&w));
        let dy = values(3, 2 * c.output().dense());
        let wide_dy = wide(&dy);
        let expected_x = differences(&wide_x, |x| dot(&reference(c, x, &wide_w), &wide_dy));
        let expected_w = differences(&wide_w, |w| dot(&reference(c, &wide_x, w), &wide_dy));
        for path in Path::supported() {
            let mut scratch = vec![f32::NAN; winograd::scratch(c)];
            let (x, dy) = (padded(c.input, &x), padded(c.output(), &dy));
            let mut sums = vec![0.0; winograd::transformed(c)];
            winograd::weight_gradient(path, c, &x, &dy, &mut sums, &mut scratch);
            let mut dw = vec![0.0; w.len()];
            winograd::finish_gradient(path, &sums, &mut dw);
            assert!(distance(&dw, &expected_w) < 5e-6, "{path:?} {c:?}");

            let turned = Convolution { input: c.output(), outputs: channels[0], stride: 1 };
            let (mut transposed, mut transformed) = (vec![0.0; w.len()], sums);
            conv3x3::transpose(c, &w, &mut transposed);
            winograd::transform_weights(path, &transposed, true, &mut transformed);
            let mut dx = vec![f32::NAN; expected_x.len()];
            winograd::forward(path, turned, &dy, &transformed, &mut dx, false, &mut scratch);
            assert!(distance(&dx, &expected_x) < 5e-6, "{path:?} {c:?}");
        }
    }
}
