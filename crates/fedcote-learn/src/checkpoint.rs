//! Weights as safetensors files, with names and shapes, readable from Python:
//! `safetensors.numpy.load_file("model.safetensors")`.

use std::{fs, path::Path};

use safetensors::{Dtype, SafeTensorError, SafeTensors, tensor::TensorView};

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

/// The bytes of the file.
///
/// # Errors
///
/// When the format cannot express a parameter.
///
/// # Panics
///
/// When there are not as many weights as the parameters say.
pub fn contents(parameters: &[Parameter], weights: &[f32]) -> Result<Vec<u8>, SafeTensorError> {
    let bytes: Vec<u8> = weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    assert_eq!(weights.len(), parameters.iter().map(Parameter::len).sum::<usize>());
    let mut tensors = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let values = &bytes[4 * parameter.offset..4 * (parameter.offset + parameter.len())];
        let tensor = TensorView::new(Dtype::F32, parameter.shape.clone(), values);
        tensors.push((&parameter.name, tensor?));
    }
    safetensors::serialize(tensors, None)
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
