//! Weights as safetensors files, with names and shapes, readable from Python:
//! `safetensors.numpy.load_file("model.safetensors")`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::{fs, path::Path};

use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use crate::{Error, models::Parameter};

/// Writes weights with their names and shapes. The file appears whole or not at all.
///
/// # Panics
///
/// When there are not as many weights as the parameters say.
pub fn save(path: &Path, parameters: &[Parameter], weights: &[f32]) -> Result<(), Error> {
    let contents = contents(parameters, weights).map_err(|error| Error::file(path, error))?;
    Ok(fedcote_support::write(path, &contents)?)
}

/// The values of a tensor.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// Of type F32.
    Numbers(&'a [f32]),
    /// Of type U8.
    Bytes(&'a [u8]),
}

impl Values<'_> {
    /// Their bytes in a file, piece by piece: there is never a copy of all of them.
    ///
    /// # Errors
    ///
    /// Those of `each`.
    pub fn pieces<E>(self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Bytes(bytes) => each(bytes),
            Self::Numbers(numbers) => {
                let mut piece = Vec::with_capacity(PIECE);
                for numbers in numbers.chunks(PIECE / size_of::<f32>()) {
                    piece.clear();
                    piece.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
                    each(&piece)?;
                }
                Ok(())
            }
        }
    }

    fn kind(self) -> Dtype {
        match self {
            Self::Numbers(_) => Dtype::F32,
            Self::Bytes(_) => Dtype::U8,
        }
    }

    fn size(self) -> usize {
        match self {
            Self::Numbers(numbers) => size_of_val(numbers),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Bytes per piece.
const PIECE: usize = 1 << 16;

/// Writes tensors (name, shape, values) as a safetensors file, without a copy of them in memory.
///
/// # Errors
///
/// When the format cannot express a tensor, or the writer fails.
pub fn write(
    to: &mut impl Write,
    mut tensors: Vec<(&str, Vec<usize>, Values)>,
    metadata: Option<HashMap<String, String>>,
) -> io::Result<()> {
    // The order of the format's own library.
    tensors.sort_by(|(left, _, one), (right, _, other)| {
        other.kind().cmp(&one.kind()).then(left.cmp(right))
    });
    let mut end = 0;
    let mut infos = Vec::with_capacity(tensors.len());
    for (name, shape, values) in &tensors {
        let data_offsets = (end, end + values.size());
        end = data_offsets.1;
        let info = TensorInfo { dtype: values.kind(), shape: shape.clone(), data_offsets };
        infos.push(((*name).to_owned(), info));
    }
    let header = Metadata::new(metadata, infos).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    to.write_all(&(header.len() as u64).to_le_bytes())?;
    to.write_all(&header)?;
    tensors.into_iter().try_for_each(|(_, _, values)| values.pieces(|piece| to.write_all(piece)))
}

/// The bytes of the file.
///
/// # Errors
///
/// When the format cannot express a parameter.
///
/// # Panics
///
/// When there are not as many weights as the parameters say.
pub fn contents(parameters: &[Parameter], weights: &[f32]) -> io::Result<Vec<u8>> {
    assert_eq!(weights.len(), parameters.iter().map(Parameter::len).sum::<usize>());
    let tensors = parameters.iter().map(|parameter| {
        let values = &weights[parameter.offset..parameter.offset + parameter.len()];
        (parameter.name.as_str(), parameter.shape.clone(), Values::Numbers(values))
    });
    let mut contents = Vec::with_capacity(size_of_val(weights) + 256 * parameters.len());
    write(&mut contents, tensors.collect(), None)?;
    Ok(contents)
}

/// Reads weights that were saved with the same names and shapes.
pub fn load(path: &Path, parameters: &[Parameter]) -> Result<Vec<f32>, Error> {
    let bytes = fs::read(path).map_err(|error| Error::file(path, error))?;
    let refuse = |reason: String| Err(Error::file(path, reason));
    let tensors = SafeTensors::deserialize(&bytes)
        .map_err(|error| Error::file(path, format!("not a safetensors file: {error}")))?;
    let strange = |name: &&str| parameters.iter().all(|parameter| parameter.name != **name);
    // The first by name: the order in the file's index is no order.
    if let Some(name) = tensors.names().into_iter().filter(strange).min() {
        return refuse(format!("{name} is not a parameter of this model"));
    }
    let mut weights = Vec::with_capacity(parameters.iter().map(Parameter::len).sum());
    for Parameter { name, shape, .. } in parameters {
        let Ok(tensor) = tensors.tensor(name) else {
            return refuse(format!("{name} is missing; the file belongs to another model"));
        };
        if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
            let (kind, found) = (tensor.dtype(), tensor.shape());
            return refuse(format!("{name} is {kind:?} {found:?}; this model needs F32 {shape:?}"));
        }
        let values = tensor.data().chunks_exact(4);
        weights.extend(
            values.map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        );
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::TensorView;

    use super::*;
    use crate::models::{Mlp, Model};

    fn weights(model: &Mlp) -> Vec<f32> {
        (0..model.len()).map(|i| (i as f32).sin()).collect()
    }

    #[test]
    fn what_was_saved_is_loaded_and_no_temporary_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let model = Mlp::new(&[3, 4, 2]);
        save(&path, model.parameters(), &[0.5; 26]).unwrap();
        save(&path, model.parameters(), &weights(&model)).unwrap();
        assert_eq!(load(&path, model.parameters()).unwrap(), weights(&model));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Against the format's own library, which needs all bytes in memory.
    #[test]
    fn files_are_those_of_the_formats_own_library() {
        let numbers: Vec<f32> = (0..40_000).map(|i| (i as f32).cos()).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let metadata = Some(HashMap::from([("key".to_owned(), "a \"value\"".to_owned())]));
        let mut found = Vec::new();
        let tensors = vec![
            ("b", vec![5], Values::Bytes(b"bytes")),
            ("d", vec![200, 200], Values::Numbers(&numbers)),
            ("c", vec![0], Values::Numbers(&[])),
        ];
        write(&mut found, tensors, metadata.clone()).unwrap();
        let view = |kind, shape: &[usize], bytes| TensorView::new(kind, shape.to_vec(), bytes);
        let tensors = [
            ("b", view(Dtype::U8, &[5], b"bytes").unwrap()),
            ("d", view(Dtype::F32, &[200, 200], &bytes).unwrap()),
            ("c", view(Dtype::F32, &[0], &[]).unwrap()),
        ];
        assert!(found == safetensors::serialize(tensors, metadata).unwrap());
        let wrong = write(&mut found, vec![("b", vec![4], Values::Bytes(b"bytes"))], None);
        assert!(wrong.is_err());
    }

    #[test]
    fn another_model_or_another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        let model = Mlp::new(&[3, 4, 2]);
        save(&path, model.parameters(), &weights(&model)).unwrap();
        let refusal = |sizes: &[usize]| {
            let error = load(&path, Mlp::new(sizes).parameters()).unwrap_err().to_string();
            error.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
        };
        assert_eq!(refusal(&[3, 5, 2]), "layer1.weight is F32 [3, 4]; this model needs F32 [3, 5]");
        assert_eq!(refusal(&[3, 4]), "layer2.bias is not a parameter of this model");
        assert_eq!(
            refusal(&[3, 4, 2, 2]),
            "layer3.weight is missing; the file belongs to another model"
        );
        fs::write(&path, b"nonsense").unwrap();
        assert!(refusal(&[3, 4, 2]).starts_with("not a safetensors file: "));
    }
}
