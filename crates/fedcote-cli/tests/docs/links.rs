//! Links between pages lead somewhere.

use crate::pages::Page;
use crate::root;

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for page in Page::all() {
        let folder = root().join(&page.name);
        let folder = folder.parent().expect("a folder");
        for target in page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.contains("://") || file.contains(' ') {
                continue;
            }
            let path = if file.is_empty() { root().join(&page.name) } else { folder.join(file) };
            let found = path.exists()
                && (anchor.is_empty() || anchors(&path).iter().any(|heading| heading == anchor));
            if !found {
                broken.push(format!("{}: {target}", page.name));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// Headings as the links to them spell them.
fn anchors(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let spell = |heading: &str| -> String {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let letters = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        letters.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(spell).collect()
}
