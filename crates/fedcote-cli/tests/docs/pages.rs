//! Pages of Markdown and their blocks of code.

use std::path::{Path, PathBuf};

use crate::root;

/// A page.
pub struct Page {
    /// Relative to the project.
    pub name: String,
    pub text: String,
}

/// A block of code.
pub struct Block {
    /// `page:line`.
    pub place: String,
    /// The word after the fence.
    pub language: String,
    pub text: String,
    /// What `<!-- test: … -->` before the block says.
    pub directive: Option<String>,
}

impl Page {
    /// All pages that users read.
    pub fn all() -> Vec<Self> {
        let root = root();
        let mut paths: Vec<PathBuf> =
            ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
                .map(|name| root.join(name))
                .to_vec();
        paths.push(root.join("python/README.md"));
        paths.push(root.join("examples/flower/README.md"));
        collect(&root.join("docs"), &mut paths);
        let read = |path: PathBuf| {
            let name = path.strip_prefix(&root).expect("inside").display().to_string();
            let text = std::fs::read_to_string(&path).expect("a page");
            Self { name, text }
        };
        paths.into_iter().map(read).collect()
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines().enumerate();
        let mut directive = None;
        while let Some((at, line)) = lines.next() {
            let trimmed = line.trim_start();
            if let Some(said) = trimmed.strip_prefix("<!-- test:") {
                directive = said.strip_suffix("-->").map(|said| said.trim().to_owned());
            } else if let Some(language) = trimmed.strip_prefix("```") {
                let indent = line.len() - trimmed.len();
                let inside = lines.by_ref().map(|(_, line)| line);
                let text: String = inside
                    .take_while(|line| line.trim() != "```")
                    .map(|line| line.get(indent..).unwrap_or("").to_owned() + "\n")
                    .collect();
                blocks.push(Block {
                    place: format!("{}:{}", self.name, at + 1),
                    language: language.trim().to_owned(),
                    text,
                    directive: directive.take(),
                });
            } else if !trimmed.is_empty() {
                directive = None;
            }
        }
        blocks
    }
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}
