//! What the words of a command line may be, and one line about those that are wrong.

use std::error::Error as _;
use std::ops::RangeInclusive;

use clap::CommandFactory;
use clap::error::{ContextKind, ErrorKind};

pub use fedcote_sim::comparison::{MAX_SEED, Seeds};

/// A whole number in a range.
pub fn whole<T: TryFrom<u64> + 'static>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let (low, high) = range.clone().into_inner();
            format!("must be a whole number from {low} to {high}, is `{text}`")
        })
    }
}

/// Any number.
pub fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("must be a number, is `{text}`"))
}

/// The name of a machine, as written in an address.
pub fn host(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(format!("must be a name such as lab.example.org, without http:// and port, is `{text}`"))
}

/// What is wrong with the words of a command line, where, and what to do.
pub fn complaint<C: CommandFactory>(error: &clap::Error, words: &[String]) -> String {
    let said = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    // `--seeds <SEEDS>` is `--seeds` to whoever typed it, and `[FILE]...` a file.
    let place = said(ContextKind::InvalidArg);
    let place = place.split(' ').next().unwrap_or_default();
    let place = place.trim_matches(['[', ']', '<', '>', '.']);
    let value = said(ContextKind::InvalidValue);
    let what = match error.kind() {
        ErrorKind::ValueValidation => {
            let reason = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{place}: {reason}")
        }
        ErrorKind::InvalidValue if !value.is_empty() => {
            let remedy = match said(ContextKind::SuggestedValue) {
                near if near.is_empty() => {
                    format!("expected one of {}", said(ContextKind::ValidValue))
                }
                near => format!("did you mean `{near}`?"),
            };
            format!("{place}: `{value}` is not known; {remedy}")
        }
        ErrorKind::UnknownArgument => {
            let whole = said(ContextKind::InvalidArg);
            format!("unexpected argument `{whole}`{}", meant(&said(ContextKind::SuggestedArg)))
        }
        ErrorKind::InvalidSubcommand => {
            let wrong = said(ContextKind::InvalidSubcommand);
            let near = said(ContextKind::SuggestedSubcommand);
            format!("no command `{wrong}`{}", meant(&near))
        }
        _ => {
            let text = error.render().to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        }
    };
    if what.ends_with('?') { what } else { format!("{what}; see `{} --help`", typed::<C>(words)) }
}

fn meant(near: &str) -> String {
    match near.split(' ').next() {
        None | Some("") => String::new(),
        Some(near) => format!("; did you mean `{}`?", near.trim_end_matches(',')),
    }
}

/// The command that was asked for, without its arguments.
fn typed<C: CommandFactory>(words: &[String]) -> String {
    let mut command = C::command();
    let mut name = command.get_name().to_owned();
    for word in words {
        let Some(inner) = command.find_subcommand(word).cloned() else { break };
        name = format!("{name} {word}");
        command = inner;
    }
    name
}
