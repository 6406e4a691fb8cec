//! Parameters of parts. Each is declared once, with type, default, range and documentation; what a `[scheme.NAME]` table
//! may say, how it is checked, what a run's configuration writes out and what the reference shows follow from that.
//!
//! [`parameters!`] declares the parameters of a part, [`choices!`] what there is to choose from: kinds of a part, or
//! words that a parameter may have.

use std::ops::{RangeFrom, RangeInclusive};

use fedcote::SettingError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::scenario::reason;

/// A parameter as the reference shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its key in a `[scheme.NAME]` table.
    pub key: &'static str,
    /// What it is.
    pub about: String,
    /// Its Rust type.
    pub kind: &'static str,
    /// Its default, as TOML; none if that depends on the scenario.
    pub default: Option<String>,
    /// Which values of its type are legal, if not all.
    pub range: Option<String>,
    /// The words it may have and what each means; none for a parameter of another type.
    pub words: Words,
    /// The choices under which it is read, outermost first: `("selection", "fedcote"), ("solver", "exact")`.
    pub given: Vec<(&'static str, &'static str)>,
}

/// Words and what each means.
pub type Words = &'static [(&'static str, &'static str)];

/// The parameters of a part; implemented by [`parameters!`].
pub trait Settings: Sized {
    /// What the table says, with defaults for what it does not say. Keys of other parts are ignored.
    fn read(table: &Table) -> Result<Self, SettingError>;

    /// Puts all parameters into the table.
    fn write(&self, table: &mut Table);

    /// All parameters.
    fn describe() -> Vec<Parameter>;
}

/// A value that a parameter may have.
pub trait Setting: Sized {
    /// The value of a key.
    fn take(
        table: &Table,
        key: &'static str,
        default: Self,
        range: Option<Range>,
    ) -> Result<Self, SettingError>;

    /// Puts the value into the table.
    fn put(&self, key: &'static str, table: &mut Table);

    /// The parameter, and those that depend on its value.
    fn describe(parameter: Parameter) -> Vec<Parameter> {
        vec![parameter]
    }
}

/// The legal values of a number, ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    low: f64,
    high: f64,
    whole: bool,
}

impl From<RangeInclusive<f64>> for Range {
    fn from(range: RangeInclusive<f64>) -> Self {
        Self { low: *range.start(), high: *range.end(), whole: false }
    }
}

impl From<RangeFrom<f64>> for Range {
    fn from(range: RangeFrom<f64>) -> Self {
        Self { low: range.start, high: f64::MAX, whole: false }
    }
}

impl From<RangeFrom<u32>> for Range {
    fn from(range: RangeFrom<u32>) -> Self {
        Self { low: range.start.into(), high: f64::MAX, whole: true }
    }
}

impl Range {
    /// In the words of a message.
    pub fn text(&self) -> String {
        let (low, high) =
            (fedcote_support::readable(self.low), fedcote_support::readable(self.high));
        match (self.high == f64::MAX, self.whole) {
            (false, _) => format!("from {low} to {high}"),
            (true, true) => format!("at least {low}"),
            (true, false) => format!("a number of {low} or more"),
        }
    }
}

/// The value of a key, if the table has it.
pub fn value<T: DeserializeOwned>(table: &Table, key: &str) -> Result<Option<T>, SettingError> {
    let read = table.get(key).map(|value| T::deserialize(value.clone())).transpose();
    read.map_err(|error| SettingError::new(key, reason(error.message())))
}

macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl Setting for $kind {
            fn take(
                table: &Table,
                key: &'static str,
                default: Self,
                range: Option<Range>,
            ) -> Result<Self, SettingError> {
                let found = value(table, key)?;
                in_range(table, key, range)?;
                Ok(found.unwrap_or(default))
            }

            fn put(&self, key: &'static str, table: &mut Table) {
                table.extend(toml(self).map(|value| (key.to_owned(), value)));
            }
        }
    )*};
}
plain!(f64, u32, bool, Option<u64>, fedcote::Draws, crate::aggregation::ServerRate);

fn in_range(table: &Table, key: &str, range: Option<Range>) -> Result<(), SettingError> {
    let number = match table.get(key) {
        Some(Value::Float(number)) => *number,
        Some(Value::Integer(number)) => *number as f64,
        _ => return Ok(()),
    };
    match range {
        Some(range) if !(range.low..=range.high).contains(&number) => {
            Err(SettingError::new(key, format!("must be {}", range.text())))
        }
        _ => Ok(()),
    }
}

/// A value as TOML; nothing for one that is not there.
pub fn toml(value: &impl Serialize) -> Option<Value> {
    Value::try_from(value).ok()
}

/// Declares the parameters of a part:
///
/// ```text
/// parameters! {
///     /// Parameters of `aggregation = "trimmed-mean"`.
///     pub struct TrimmedSettings {
///         /// The share of values left out at either end.
///         trim: f64 = 0.1, in 0.0..=0.4;
///     }
/// }
/// ```
macro_rules! parameters {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $($(#[doc = $about:literal])* $key:ident: $kind:ty = $default:expr $(, in $range:expr)?;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $about])* pub $key: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $crate::scheme::settings::Settings for $name {
            fn read(table: &toml::Table) -> Result<Self, fedcote::SettingError> {
                use $crate::scheme::settings::{Range, Setting};
                Ok(Self {
                    $($key: {
                        let range: &[Range] = &[$($range.into())?];
                        Setting::take(table, stringify!($key), $default, range.first().copied())?
                    },)*
                })
            }

            fn write(&self, table: &mut toml::Table) {
                $($crate::scheme::settings::Setting::put(&self.$key, stringify!($key), table);)*
            }

            fn describe() -> Vec<$crate::scheme::settings::Parameter> {
                use $crate::scheme::settings::{Parameter, Range, Setting, toml};
                let mut all = Vec::new();
                $(
                    let default: $kind = $default;
                    let range: &[Range] = &[$($range.into())?];
                    all.extend(<$kind as Setting>::describe(Parameter {
                        key: stringify!($key),
                        about: concat!($($about),*).trim().to_owned(),
                        kind: stringify!($kind),
                        default: toml(&default).map(|value| value.to_string()),
                        range: range.first().map(Range::text),
                        words: &[],
                        given: Vec::new(),
                    }));
                )*
                all
            }
        }
    };
}
pub(crate) use parameters;

/// Declares what a key may be, the default first, with the parameters that a word brings along:
///
/// ```text
/// choices! {
///     /// What becomes of what arrived.
///     pub enum AggregationKind in "aggregation" {
///         /// The mean of what arrived, each copy counting once.
///         "mean" => Mean(StepSettings),
///         …
/// ```
macro_rules! choices {
    (
        $(#[$doc:meta])*
        pub enum $name:ident in $key:literal {
            $($(#[doc = $about:literal])* $word:literal => $variant:ident $(($settings:ty))?,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[doc = $about])* $variant $(($settings))?,)*
        }

        #[allow(unused, clippy::redundant_pattern)] // Words without parameters need less than those with some.
        impl $name {
            /// The words, the default first, and what each means.
            pub const WORDS: $crate::scheme::settings::Words =
                &[$(($word, concat!($($about),*).trim_ascii())),*];

            /// The word that a scenario uses.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $word,)*
                }
            }

            /// What the table says.
            pub fn read(table: &toml::Table) -> Result<Self, fedcote::SettingError> {
                use $crate::scheme::settings::{Settings, value};
                let word: Option<String> = value(table, $key)?;
                match word.as_deref().unwrap_or(Self::WORDS[0].0) {
                    $($word => Ok(Self::$variant $((<$settings as Settings>::read(table)?))?),)*
                    other => {
                        let words: Vec<&str> = Self::WORDS.iter().map(|(word, _)| *word).collect();
                        let remedy = fedcote_support::suggestion(other, &words);
                        let reason = format!("`{other}` is not known{remedy}");
                        Err(fedcote::SettingError::new($key, reason))
                    }
                }
            }

            /// Puts the word and its parameters into the table.
            pub fn write(&self, table: &mut toml::Table) {
                use $crate::scheme::settings::{Settings, bound};
                table.insert($key.to_owned(), self.word().into());
                match self {
                    $(Self::$variant $((found @ bound!($settings)))? => {
                        $(<$settings as Settings>::write(found, table);)?
                    })*
                }
            }

            /// The parameters that its words bring along.
            pub fn parameters() -> Vec<$crate::scheme::settings::Parameter> {
                use $crate::scheme::settings::Settings;
                let mut all = Vec::new();
                $($(
                    all.extend(<$settings as Settings>::describe().into_iter().map(|mut found| {
                        found.given.insert(0, ($key, $word));
                        found
                    }));
                )?)*
                all
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::read(&toml::Table::new()).expect("the first word, with defaults")
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl $crate::scheme::settings::Setting for $name {
            fn take(
                table: &toml::Table,
                _key: &'static str,
                _default: Self,
                _range: Option<$crate::scheme::settings::Range>,
            ) -> Result<Self, fedcote::SettingError> {
                Self::read(table)
            }

            fn put(&self, _key: &'static str, table: &mut toml::Table) {
                self.write(table);
            }

            fn describe(
                parameter: $crate::scheme::settings::Parameter,
            ) -> Vec<$crate::scheme::settings::Parameter> {
                let mut all = Self::parameters();
                all.insert(0, $crate::scheme::settings::Parameter { words: Self::WORDS, ..parameter });
                all
            }
        }
    };
}
pub(crate) use choices;

/// The pattern for the parameters of a word.
macro_rules! bound {
    ($settings:ty) => {
        _
    };
}
pub(crate) use bound;
