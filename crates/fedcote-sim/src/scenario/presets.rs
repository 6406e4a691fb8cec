//! Scenarios that travel inside the program.

/// A scenario with a name.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// What the user types.
    pub name: &'static str,
    /// The file's text; its first line says what it is.
    pub text: &'static str,
}

macro_rules! preset {
    ($name:literal) => {
        Preset { name: $name, text: include_str!(concat!("../../scenarios/", $name, ".toml")) }
    };
}

/// All presets. Each on radio links is also there with walking clients, under its name with `-dynamic` behind it.
pub const PRESETS: [Preset; 7] = [
    preset!("quickstart"),
    preset!("paper-literal"),
    preset!("paper-calibrated"),
    preset!("paper-harsh"),
    preset!("cifar10"),
    preset!("fedawe"),
    preset!("fedawe-mnist"),
];

impl Preset {
    /// The preset of that name, and whether its clients are to walk.
    pub fn find(name: &str) -> Option<(Self, bool)> {
        // The paper has one dynamic scenario; by its short name it is on the calibrated network.
        let name = if name == "paper-dynamic" { "paper-calibrated-dynamic" } else { name };
        let still = name.strip_suffix("-dynamic");
        let base = still.unwrap_or(name);
        let found = PRESETS.iter().find(|preset| preset.name == base)?;
        (still.is_none() || found.has_places()).then_some((*found, still.is_some()))
    }

    /// Whether its clients are somewhere, so that they could walk.
    pub fn has_places(&self) -> bool {
        self.text.contains("kind = \"radio\"")
    }

    /// The file's text with walking clients.
    pub fn walking(&self) -> String {
        self.text.replace("[network]\n", "[network]\nmobility = \"walk\"\n")
    }

    /// The names of all presets.
    pub fn names() -> Vec<String> {
        let both = |p: &Preset| {
            let walking = p.has_places().then(|| format!("{}-dynamic", p.name));
            std::iter::once(p.name.to_owned()).chain(walking)
        };
        PRESETS.iter().flat_map(both).chain(["paper-dynamic".to_owned()]).collect()
    }

    /// The first line of the file: what the preset is.
    pub fn summary(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }
}
