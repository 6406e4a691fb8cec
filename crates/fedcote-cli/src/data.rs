//! `fedcote data`: which data sets there are, whether a folder holds one, and how to get one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fedcote_learn::data::{DataSpec, Dataset, SetKind, Split, cifar10, idx, load};
use serde::Serialize;

use crate::error::Error;
use crate::table::{Align, Table, styled};

/// List, check, export and fetch data sets
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fedcote data list
  fedcote data check mnist
  fedcote data check ~/fashion-mnist --json
  fedcote data export mnist --into digits
  fedcote data fetch cifar10 --into data/cifar10

Exit status: 0 done, 1 the work failed, 2 the request was wrong.")]
pub struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the data sets that a scenario may name
    List {
        /// Print one JSON document instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Read a whole data set and show its contents
    Check {
        /// `mnist`, `cifar10` in data/cifar10, or a folder with four IDX files or the files of CIFAR-10
        set: PathBuf,
        /// Print one JSON document instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Write a data set as four IDX files, for other programs or for changes
    Export {
        /// `mnist`, `cifar10` in data/cifar10, or a folder with four IDX files or the files of CIFAR-10
        set: PathBuf,
        /// The folder to put the files in
        #[arg(long, value_name = "FOLDER")]
        into: PathBuf,
        /// Overwrite files of an earlier export
        #[arg(long)]
        force: bool,
    },
    /// Download a data set, check it and unpack it
    Fetch {
        /// Which one
        set: Fetchable,
        /// The folder to put the files in
        #[arg(long, value_name = "FOLDER", default_value = CIFAR10)]
        into: PathBuf,
        /// Unpack this archive instead of downloading one
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
}

/// The default folder of CIFAR-10, and where the preset looks for it.
const CIFAR10: &str = "data/cifar10";

#[derive(Clone, Copy, clap::ValueEnum)]
enum Fetchable {
    Cifar10,
}

pub fn run(args: Args) -> Result<(), Error> {
    match args.command {
        Action::List { json } => list(json),
        Action::Check { set, json } => check(&set, json),
        Action::Export { set, into, force } => export(&set, &into, force),
        Action::Fetch { set: Fetchable::Cifar10, into, from } => fetch(&into, from.as_deref()),
    }
}

#[derive(Serialize)]
struct Known {
    set: &'static str,
    what: &'static str,
    needs: &'static str,
}

const KNOWN: [Known; 4] = [
    Known {
        set: "mnist",
        what: "handwritten digits, 28×28, 10 classes, 60,000 + 10,000",
        needs: "nothing",
    },
    Known {
        set: "cifar10",
        what: "photographs, 32×32×3, 10 classes, 50,000 + 10,000",
        needs: "path; get it with `fedcote data fetch cifar10`",
    },
    Known {
        set: "idx",
        what: "any four IDX files, plain or .gz (Fashion-MNIST, EMNIST, yours)",
        needs: "path",
    },
    Known {
        set: "synthetic",
        what: "Gaussian classes of any size",
        needs: "samples, features, classes, noise",
    },
];

fn list(json: bool) -> Result<(), Error> {
    if json {
        return crate::output::print(
            &(serde_json::to_string_pretty(&KNOWN).map_err(Error::work)? + "\n"),
        );
    }
    let mut table =
        Table::new([("set", Align::Left), ("what", Align::Left), ("keys of [data]", Align::Left)]);
    for Known { set, what, needs } in KNOWN {
        table.push([set, what, needs].map(str::to_owned));
    }
    crate::output::print(&table.render(styled()))
}

#[derive(Serialize)]
struct Document<'a> {
    set: &'static str,
    name: &'a str,
    height: usize,
    width: usize,
    channels: usize,
    classes: usize,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    train: Vec<u64>,
    test: Vec<u64>,
}

fn check(set: &Path, json: bool) -> Result<(), Error> {
    let spec = recognise(set)?;
    let data = load(&spec, Path::new("")).map_err(Error::request)?;
    let document = describe(&spec, &data);
    if json {
        return crate::output::print(
            &(serde_json::to_string_pretty(&document).map_err(Error::work)? + "\n"),
        );
    }
    let Document { set, name, height, width, channels, classes, .. } = document;
    let mut text = format!("{name} ({set}): {height}×{width}×{channels}, {classes} classes\n");
    for (channel, (mean, deviation)) in document.mean.iter().zip(&document.deviation).enumerate() {
        text += &format!(
            "channel {channel}: standardised by mean {mean:.4}, deviation {deviation:.4}\n"
        );
    }
    let mut table =
        Table::new([("class", Align::Left), ("train", Align::Right), ("test", Align::Right)]);
    for (class, (train, test)) in document.train.iter().zip(&document.test).enumerate() {
        table.push([class.to_string(), train.to_string(), test.to_string()]);
    }
    let sum = |counts: &[u64]| counts.iter().sum::<u64>().to_string();
    table.push(["all".into(), sum(&document.train), sum(&document.test)]);
    crate::output::print(&(text + &table.render(styled())))
}

fn export(set: &Path, into: &Path, force: bool) -> Result<(), Error> {
    let spec = recognise(set)?;
    crate::output::folder("--into", into)?;
    // The files are exported to be changed.
    if let Some(file) = idx::FILES.iter().find(|file| !force && into.join(file).exists()) {
        let file = into.join(file);
        return Err(Error::request(format!(
            "{}: is there already; choose another folder, or add --force to overwrite it",
            file.display()
        )));
    }
    let data = load(&spec, Path::new("")).map_err(Error::request)?;
    make(into)?;
    idx::write(into, &data).map_err(Error::work)?;
    check(into, false)
}

fn make(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder)
        .map_err(|error| Error::work(format!("{}: {error}", folder.display())))
}

/// What kind of data set a name or a folder is.
fn recognise(set: &Path) -> Result<DataSpec, Error> {
    if set == Path::new("mnist") {
        return Ok(DataSpec::default());
    }
    if !set.is_dir() {
        let reason = match set.to_str() {
            Some("cifar10") => {
                // The error for a folder without it says how to get it.
                let (set, path) = (SetKind::Cifar10, Some(CIFAR10.into()));
                return Ok(DataSpec { set, path, ..DataSpec::default() });
            }
            Some("synthetic") => "is made from the keys of each scenario: there are no files",
            Some("idx") => "is any folder with four IDX files: give the folder's path",
            _ => "neither `mnist` nor `cifar10` nor a folder",
        };
        return Err(Error::request(format!("{}: {reason}", set.display())));
    }
    let has = |folder: &Path| cifar10::FILES.iter().any(|file| folder.join(file).exists());
    let kind = if has(set) || has(&set.join("cifar-10-batches-bin")) {
        SetKind::Cifar10
    } else {
        SetKind::Idx
    };
    Ok(DataSpec { set: kind, path: Some(set.to_path_buf()), ..DataSpec::default() })
}

fn describe<'a>(spec: &DataSpec, data: &'a Dataset) -> Document<'a> {
    let counts = |split: &Split| {
        let mut counts = vec![0; split.classes];
        split.labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        counts
    };
    let shape = data.train.shape;
    Document {
        set: match spec.set {
            SetKind::Mnist => "mnist",
            SetKind::Cifar10 => "cifar10",
            SetKind::Idx => "idx",
            SetKind::Synthetic => "synthetic",
        },
        name: &data.name,
        height: shape.height,
        width: shape.width,
        channels: shape.channels,
        classes: data.train.classes,
        mean: data.train.standards.iter().map(|standard| standard.mean).collect(),
        deviation: data.train.standards.iter().map(|standard| standard.deviation).collect(),
        train: counts(&data.train),
        test: counts(&data.test),
    }
}

/// Gets CIFAR-10 from its home page by `curl`, which every system has, rather than by a TLS library of our own.
fn fetch(into: &Path, from: Option<&Path>) -> Result<(), Error> {
    crate::output::folder("--into", into)?;
    let archive = match from {
        Some(file) => file.to_path_buf(),
        None => {
            make(into)?;
            let file = into.join("cifar-10-binary.tar.gz.part");
            download(cifar10::ARCHIVE, &file)?;
            file
        }
    };
    let bytes = fs::read(&archive)
        .map_err(|error| Error::request(format!("{}: {error}", archive.display())))?;
    let unpacked = cifar10::unpack(&archive, &bytes, into);
    if from.is_none() {
        // Only a download that proved damaged, or is unpacked by now: nothing is lost if this fails.
        let _ = fs::remove_file(&archive);
    }
    // A wrong file that the user named is a wrong request; a bad download is failed work.
    unpacked
        .map_err(|error| if from.is_some() { Error::request(error) } else { Error::work(error) })?;
    check(into, false)
}

fn download(address: &str, file: &Path) -> Result<(), Error> {
    eprintln!("fetching {address} (162 MB)");
    let by_hand = format!("download {address} yourself and use --from FILE");
    let status = Command::new("curl")
        .args([
            "--fail",
            "--location",
            "--silent",
            "--show-error",
            "--continue-at",
            "-",
            "--output",
        ])
        .arg(file)
        .arg(address)
        .status()
        .map_err(|error| Error::work(format!("curl does not start ({error}); {by_hand}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::work(format!("curl failed ({status}); {by_hand}")))
    }
}
