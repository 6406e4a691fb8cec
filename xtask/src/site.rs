//! `cargo xtask site`: the pages of `docs/` as a web site below `target/site`, by MkDocs, which checks links and anchors.
//!
//! The pages are written for a reader of Markdown files. A copy of them is made into what MkDocs reads: links to files outside
//! `docs/` lead to the repository, what belongs to an item of a list is indented by four, and the navigation is made of the links of
//! `docs/README.md`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::python::Environment;

/// Where files are that are no part of the site.
const REPOSITORY: &str = "https://github.com/fedcote/fedcote/blob/main";

/// Builds the site.
pub fn run() -> Result<(), String> {
    let (root, target) = (crate::root(), crate::target());
    let folder = target.join("python");
    println!(
        "Installs MkDocs from the Python package index into an environment in {}, unless it is there",
        folder.display()
    );
    fs::create_dir_all(&folder).map_err(told(&folder))?;
    let environment = Environment::new(&folder, "site")?;
    environment.install(&["mkdocs>=1.6,<2", "pymdown-extensions"])?;
    let source = target.join("site-source");
    for made in [&source, &target.join("site")] {
        if made.exists() {
            fs::remove_dir_all(made).map_err(told(made))?;
        }
    }
    let pages = copy(&root.join("docs"), Path::new(""), &source.join("docs"))?;
    let contents = fs::read_to_string(root.join("docs/README.md")).map_err(told(root))?;
    let file = source.join("mkdocs.yml");
    fs::write(&file, configuration(&contents)).map_err(told(&file))?;
    let mut build = environment.module("mkdocs");
    build.args(["build", "--strict", "--site-dir"]).arg(target.join("site"));
    crate::run(build.arg("--config-file").arg(&file))?;
    println!("{pages} pages in {}", target.join("site").display());
    Ok(())
}

fn told(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// Copies a folder of `docs/`, pages as MkDocs reads them; the number of pages.
fn copy(docs: &Path, inside: &Path, to: &Path) -> Result<usize, String> {
    fs::create_dir_all(to.join(inside)).map_err(told(to))?;
    let mut pages = 0;
    let from = docs.join(inside);
    for entry in fs::read_dir(&from).map_err(told(&from))? {
        let path = entry.map_err(told(&from))?.path();
        let name = inside.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            pages += copy(docs, &name, to)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).map_err(told(&path))?;
            fs::write(to.join(&name), page(&text, docs, inside)).map_err(told(to))?;
            pages += 1;
        } else {
            fs::copy(&path, to.join(&name)).map_err(told(&path))?;
        }
    }
    Ok(pages)
}

/// A page as MkDocs reads it.
fn page(text: &str, docs: &Path, inside: &Path) -> String {
    let mut made = String::new();
    let (mut numbered, mut fence, mut before) = (false, false, "");
    for line in text.lines() {
        let start = line.trim_start();
        let item = start.starts_with("- ") || number(start);
        if !line.is_empty() && !line.starts_with(' ') {
            numbered = number(line) && !fence;
        }
        // A list begins after an empty line.
        let listed = before.is_empty()
            || before.starts_with(' ')
            || before.starts_with("- ")
            || number(before);
        if item && !fence && !listed {
            made.push('\n');
        }
        let indent = if numbered && line.starts_with("   ") { " " } else { "" };
        if start.starts_with("```") {
            fence = !fence;
        }
        let linked = if fence { line.to_owned() } else { links(line, docs, inside) };
        made += &format!("{indent}{linked}\n");
        before = line;
    }
    made
}

/// Whether a line begins an item of a numbered list.
fn number(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(". ")
}

/// A line in which links that lead out of `docs/`, or to a folder, lead to the repository.
fn links(line: &str, docs: &Path, inside: &Path) -> String {
    let mut parts = line.split("](");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        made += "](";
        let (link, rest) = part.split_once(')').unwrap_or((part, ""));
        let file = link.split('#').next().unwrap_or_default();
        let outside = !file.is_empty()
            && !link.contains(':')
            && place(inside, file).is_none_or(|path| docs.join(path).is_dir());
        if outside {
            let path = place(&Path::new("docs").join(inside), file).unwrap_or_default();
            made += &format!("{REPOSITORY}/{}", path.display());
        } else {
            made += link;
        }
        if part.contains(')') {
            made += &format!("){rest}");
        }
    }
    made
}

/// The path of a link in a page of this folder; none if it leads out.
fn place(folder: &Path, link: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir if !path.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            part => path.push(part),
        }
    }
    Some(path)
}

/// What MkDocs is told, with the pages that `docs/README.md` links to, by its headings.
fn configuration(contents: &str) -> String {
    let mut navigation = String::from("nav:\n  - FedCote: README.md\n");
    let mut known = vec!["README.md".to_owned()];
    for (at, section) in contents.split("\n## ").enumerate() {
        let title = if at == 0 { "Start" } else { section.lines().next().unwrap_or_default() };
        let mut entries = String::new();
        for part in section.split('[').skip(1) {
            let Some((text, rest)) = part.split_once("](") else { continue };
            let file = rest.split([')', '#']).next().unwrap_or_default();
            if file.ends_with(".md") && !known.iter().any(|one| one == file) {
                known.push(file.to_owned());
                let text = text.replace('`', "").replace('\n', " ");
                entries += &format!("      - {text:?}: {file}\n");
            }
        }
        if !entries.is_empty() {
            navigation += &format!("  - {title:?}:\n{entries}");
        }
    }
    format!(
        "site_name: FedCote\n\
         site_url: https://fedcote.github.io/fedcote/\n\
         repo_url: https://github.com/fedcote/fedcote\n\
         docs_dir: docs\n\
         use_directory_urls: false\n\
         theme:\n  name: readthedocs\n  highlightjs: false\n\
         markdown_extensions:\n\
         \x20 - pymdownx.superfences\n\
         \x20 - toc:\n      permalink: true\n      slugify: !!python/object/apply:pymdownx.slugs.slugify\n        kwds: {{case: lower}}\n\
         validation:\n\
         \x20 omitted_files: ignore\n\
         \x20 absolute_links: warn\n\
         \x20 unrecognized_links: warn\n\
         \x20 not_found: warn\n\
         \x20 anchors: warn\n\
         {navigation}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside_or_lead_to_the_repository() {
        let docs = crate::root().join("docs");
        let of = |line: &str, folder: &str| links(line, &docs, Path::new(folder));
        assert_eq!(
            of("see [a](guide/data.md#x) and [b](#y)", ""),
            "see [a](guide/data.md#x) and [b](#y)"
        );
        assert_eq!(
            of("[c](../../python/fedcote/client.py).", "guide"),
            format!("[c]({REPOSITORY}/python/fedcote/client.py).")
        );
        assert_eq!(of("[d](https://example.org/x)", "guide"), "[d](https://example.org/x)");
        assert_eq!(
            of("[e](paper/cifar10/)", "results"),
            format!("[e]({REPOSITORY}/docs/results/paper/cifar10)")
        );
    }

    #[test]
    fn lists_are_as_the_program_reads_them() {
        let made = page(
            "Text:\n- a\n- b\n\n1. c\n\n   ```sh\n   d\n   ```\n",
            &crate::root().join("docs"),
            Path::new(""),
        );
        assert_eq!(made, "Text:\n\n- a\n- b\n\n1. c\n\n    ```sh\n    d\n    ```\n");
    }

    #[test]
    fn the_navigation_has_the_pages_of_the_first_page() {
        let made = configuration(
            "# T\n[new](concepts.md)\n\n## Guide\n\n- [`x`: y](guide/a.md#z), [again](concepts.md)\n",
        );
        assert!(made.ends_with(
            "nav:\n  - FedCote: README.md\n  - \"Start\":\n      - \"new\": concepts.md\n  - \"Guide\":\n      - \"x: y\": guide/a.md\n"
        ), "{made}");
    }
}
