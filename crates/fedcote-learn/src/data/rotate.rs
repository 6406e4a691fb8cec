//! Clients whose images are turned: features that differ between clients of the same labels.
//!
//! "Rotated MNIST" (Ghosh et al., An Efficient Framework for Clustered Federated Learning, NeurIPS 2020): client i has its images turned by
//! i mod R quarter turns. Test image j is turned by j mod R, so that the test set has all turns alike.

use super::{Dataset, Split};
use crate::{Error, Partition};

/// The data set with the images of each client, and the test images, turned by up to `rotations` − 1 quarter turns.
///
/// # Errors
///
/// When images are not square.
pub fn rotate(data: &Dataset, partition: &Partition, rotations: usize) -> Result<Dataset, Error> {
    let shape = data.train.shape;
    if shape.height != shape.width {
        let reason = format!("needs square images, not {} × {}", shape.height, shape.width);
        return Err(Error::setting("data.rotations", reason));
    }
    let mut turned = data.clone();
    for client in 0..partition.len() {
        for &sample in partition.client(client) {
            turn(&mut turned.train, sample as usize, client % rotations);
        }
    }
    for sample in 0..turned.test.labels.len() {
        turn(&mut turned.test, sample, sample % rotations);
    }
    Ok(turned)
}

/// Turns one image counter-clockwise by quarter turns.
fn turn(split: &mut Split, sample: usize, quarters: usize) {
    let (side, channels) = (split.shape.width, split.shape.channels);
    let image = &mut split.images[sample * side * side * channels..][..side * side * channels];
    let old = image.to_vec();
    let pixel = |row: usize, column: usize| (row * side + column) * channels;
    for row in 0..side {
        for column in 0..side {
            let (from_row, from_column) = match quarters {
                0 => (row, column),
                1 => (column, side - 1 - row),
                2 => (side - 1 - row, side - 1 - column),
                _ => (side - 1 - column, row),
            };
            let from = pixel(from_row, from_column);
            image[pixel(row, column)..][..channels].copy_from_slice(&old[from..from + channels]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DataSpec, PartitionKind, Shape, load};

    fn split(images: Vec<u8>, shape: Shape) -> Split {
        let labels = vec![0; images.len() / shape.len()];
        Split { images, labels, shape, classes: 2, standards: Vec::new() }
    }

    #[test]
    fn quarter_turns_are_as_by_hand() {
        // Two channels: 1 2 over 3 4, the second channel ten more.
        let shape = Shape { height: 2, width: 2, channels: 2 };
        let image = vec![1, 11, 2, 12, 3, 13, 4, 14];
        let mut one = split(image.clone(), shape);
        turn(&mut one, 0, 1);
        // Counter-clockwise: 2 4 over 1 3.
        assert_eq!(one.images, [2, 12, 4, 14, 1, 11, 3, 13]);
        for quarters in 0..4 {
            let (mut at_once, mut by_steps) =
                (split(image.clone(), shape), split(image.clone(), shape));
            turn(&mut at_once, 0, quarters);
            for _ in 0..quarters {
                turn(&mut by_steps, 0, 1);
            }
            assert_eq!(at_once.images, by_steps.images, "{quarters}");
        }
    }

    #[test]
    fn each_client_has_its_own_turn_and_the_test_set_all() {
        let shape = Shape { height: 2, width: 2, channels: 1 };
        let images: Vec<u8> = (0..8).flat_map(|_| [1, 2, 3, 4]).collect();
        let mut train = split(images.clone(), shape);
        train.labels = vec![0, 1, 0, 1, 0, 1, 0, 1];
        let data = Dataset { name: "squares".into(), train, test: split(images, shape) };
        let spec = DataSpec { partition: PartitionKind::Iid, ..DataSpec::default() };
        let partition = crate::partition(&spec, &data.train.labels, 2, 4, 1).unwrap();
        let turned = rotate(&data, &partition, 3).unwrap();
        let turns = [[1, 2, 3, 4], [2, 4, 1, 3], [4, 3, 2, 1]];
        for client in 0..4 {
            for &sample in partition.client(client) {
                let image = &turned.train.images[4 * sample as usize..][..4];
                assert_eq!(image, turns[client % 3], "client {client}");
            }
        }
        for (sample, image) in turned.test.images.chunks(4).enumerate() {
            assert_eq!(image, turns[sample % 3], "{sample}");
        }
    }

    #[test]
    fn images_that_are_not_square_are_refused() {
        let spec = DataSpec { set: crate::data::SetKind::Synthetic, ..DataSpec::default() };
        let data = load(&spec, ".".as_ref()).unwrap();
        let partition = crate::partition(&spec, &data.train.labels, 10, 4, 1).unwrap();
        let error = rotate(&data, &partition, 2).unwrap_err().to_string();
        assert_eq!(error, "data.rotations: needs square images, not 1 × 20");
    }
}
