//! Weights as safetensors files, with names and shapes, readable from Python:
//! `safetensors.numpy.load_file("model.safetensors")`.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::{Error, models::Parameter};

/// Writes weights with their names and shapes. The file appears whole or not at all.
///
/// # Panics
///
/// When there are not as many weights as the parameters say.
pub fn save(path: &Path, parameters: &[Parameter], weights: &[f32]) -> Result<(), Error> {
    let bytes: Vec<u8> = weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    assert_eq!(weights.len(), parameters.iter().map(Parameter::len).sum::<usize>());
    let mut tensors = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let values = &bytes[4 * parameter.offset..4 * (parameter.offset + parameter.len())];
        let tensor = TensorView::new(Dtype::F32, parameter.shape.clone(), values);
        tensors.push((&parameter.name, tensor.map_err(|error| Error::file(path, error))?));
    }
    let contents =
        safetensors::serialize(tensors, None).map_err(|error| Error::file(path, error))?;
    write(path, &contents)
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

/// Replaces a file as a whole: a temporary file beside it, flushed to the disk, then renamed. Whatever
/// interrupts this leaves the old file or the new one.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    let mut temporary = beside(path);
    let mut result = write_to(&temporary, contents);
    // The name is taken when a process of the same number was killed while it wrote: in a container numbers repeat.
    while result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
        temporary = beside(path);
        result = write_to(&temporary, contents);
    }
    let result = result.and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // Nothing more can be done if this fails too; the first reason is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    result.map_err(|source| Error::Write { path: path.to_owned(), source })?;
    // The rename itself must survive a power cut; folders cannot be opened for that everywhere.
    if let Ok(folder) =
        File::open(path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))
    {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Removes from a folder what an interrupted [`write()`] left there; what processes that are there (`alive`) may be writing
/// stays. A folder that is not there has nothing to remove.
pub fn sweep(folder: &Path, alive: impl Fn(u32) -> bool) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let path = entry?.path();
        let writer = path.file_name().and_then(|name| name.to_str()).and_then(writer);
        if writer.is_some_and(|process| !alive(process)) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn write_to(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

/// The process that wrote to a name that [`beside`] makes, `.NAME.PROCESS.NUMBER.part`. Others' files are none of ours.
fn writer(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix('.')?.strip_suffix(".part")?.rsplitn(3, '.');
    parts.next()?.parse::<u64>().ok()?;
    let process = parts.next()?.parse().ok()?;
    parts.next().filter(|name| !name.is_empty()).map(|_| process)
}

/// A name in the same folder that no other write uses.
fn beside(path: &Path) -> PathBuf {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.{}.part", std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
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

    #[test]
    fn a_failed_write_leaves_the_old_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        // A folder that is not empty cannot be replaced by a file.
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), b"x").unwrap();
        assert!(write(&path, b"new").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// In a container every process may have the same number: a file left by one that was killed used to stop the next.
    #[test]
    fn a_temporary_file_of_a_killed_namesake_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        // The next names that this process would use, whatever other tests write meanwhile.
        for number in 0..50 {
            let name = format!(".m.{}.{number}.part", std::process::id());
            fs::write(folder.path().join(name), b"left").unwrap();
        }
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        sweep(folder.path(), |_| false).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// A report that one command was writing used to be swept away by another.
    #[test]
    fn what_is_being_written_and_files_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let names =
            [".m.7.0.part", ".m.8.0.part", ".film.part", ".a.b.part", "m.7.0.part", "..7.0.part"];
        for name in names {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        sweep(folder.path(), |process| process == 8).unwrap();
        let left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false, true, true, true, true, true]);
    }

    #[test]
    fn a_disk_that_refuses_says_what_to_do() {
        let full = Error::Write {
            path: "a/b".into(),
            source: io::Error::from(io::ErrorKind::StorageFull),
        };
        assert!(full.to_string().contains("make room"), "{full}");
    }
}
