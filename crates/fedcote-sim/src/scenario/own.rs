//! `[task]`: what is learnt, in the user's own code.

use std::path::PathBuf;

use fedcote::SettingError;
use serde::{Deserialize, Serialize};
use toml::Table;

/// The `[task]` table: a task in Python in place of `[data]` and `[model]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnTask {
    /// The function that makes the task, `"module:function"`; it gets `clients`, `seed` and the settings by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Where the module is, besides the places that Python knows; default the folder of the scenario file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Further arguments of the function.
    #[serde(skip_serializing_if = "Table::is_empty")]
    pub settings: Table,
}

impl OwnTask {
    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.python.is_some()
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        match &self.python {
            Some(name) if !is_place(name) => Err(SettingError::new(
                "task.python",
                format!("must be \"module:function\", is `{name}`"),
            )),
            None if self.folder.is_some() || !self.settings.is_empty() => Err(SettingError::new(
                "task.python",
                "missing: name the function that makes the task",
            )),
            _ => Ok(()),
        }
    }
}

/// Whether a text is `module:name`, both with dots perhaps.
pub(crate) fn is_place(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let dotted = |name: &str| name.split('.').all(word);
    text.split_once(':').is_some_and(|(module, name)| dotted(module) && dotted(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_a_module_and_a_name() {
        for good in ["task:make", "my.tasks:Digits", "a_1:b.c"] {
            assert!(is_place(good), "{good}");
        }
        for bad in ["", "task", "task:", ":make", "a b:c", "a:b:c", "a..b:c", "1a:b", "a.py:make("]
        {
            assert!(!is_place(bad), "{bad}");
        }
    }
}
