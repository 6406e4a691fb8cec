use super::*;
use crate::theme::Theme;

fn small() -> Map {
    let client = |name: &str, standard, at, indoor, failure, route| Client {
        name: name.into(),
        standard,
        at,
        indoor,
        failure,
        route,
    };
    Map {
        title: "Two & two".into(),
        radius: 200.0,
        building: [30.0, 0.0, 20.0, 20.0],
        stations: vec![Station { name: "Base <station>".into(), at: (0.0, 0.0), indoor: false }],
        standards: vec!["Wi-Fi".into(), "4G".into()],
        clients: vec![
            client("1", 0, (30.0, 5.0), true, 0.0, vec![]),
            client("2", 1, (25.0, -5.0), true, 0.5, vec![(25.0, -5.0), (0.0, 200.0), (25.0, -5.0)]),
            client("3", 0, (-100.0, 0.0), false, 0.97, vec![]),
        ],
    }
}

#[test]
fn colours_follow_the_bounds() {
    let steps = [0.0, 0.01, 0.011, 0.1, 0.3, 0.35, 0.36, 0.85, 0.851, 1.0].map(step);
    assert_eq!(steps, [0, 0, 1, 1, 2, 2, 3, 4, 5, 5]);
}

#[test]
fn everything_is_on_the_map_once() {
    let text = map(&small()).document();
    let tree = roxmltree::Document::parse(&text).unwrap();
    let with = |class: &str| {
        let has = |node: &roxmltree::Node| {
            node.attribute("class").is_some_and(|found| found.split(' ').any(|word| word == class))
        };
        tree.descendants().filter(has).count()
    };
    // A step of the scale is one rectangle of the legend and the clients of that step.
    assert_eq!((0..6).map(|n| with(&format!("f{n}"))).collect::<Vec<_>>(), [2, 1, 1, 2, 1, 2]);
    // The way to and fro leaves the enlarged building: drawn once in both views, not twice, which would fill
    // the gaps between its dashes.
    assert_eq!(with("route"), 2);
    let texts: Vec<_> = tree
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    for shown in ["2", "3", "50 m", "5 m", "Base <station>", "4G", "way of a walking client"] {
        assert_eq!(texts.iter().filter(|text| **text == shown).count(), 1, "{shown}: {texts:?}");
    }
    let title = tree.descendants().find(|node| node.has_tag_name("title")).unwrap();
    assert_eq!(title.text(), Some("Two & two"));
    let describe =
        tree.descendants().find(|node| node.has_tag_name("desc")).unwrap().text().unwrap();
    assert!(describe.contains("3 clients, 2 indoors, 1 outdoors."), "{describe}");
    assert!(describe.contains("Wi-Fi: 2 clients, mean failure 0.48, highest 0.97."), "{describe}");
    assert!(!map(&small()).themed(Theme::Dark).contains("var("));
}

#[test]
fn a_large_building_needs_no_enlargement() {
    let text = map(&Map { building: [0.0, 0.0, 150.0, 90.0], ..small() }).document();
    assert!(!text.contains("enlarged"));
}

#[test]
fn a_crowd_is_thinned_out() {
    let one = small().clients[2].clone();
    let text = map(&Map { clients: vec![one; 9000], ..small() }).document();
    assert!(text.contains("one client in 3 is shown"));
    assert!(text.len() < 400_000, "{}", text.len());
}

#[test]
fn clipping_keeps_what_is_in_view() {
    let area = Area { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };
    let view = View::new(area, (0.0, 0.0), 100.0);
    assert_eq!(view.clip((-100.0, 0.0), (100.0, 0.0)), Some([(0.0, 50.0), (100.0, 50.0)]));
    assert_eq!(view.clip((0.0, 0.0), (0.0, 10.0)), Some([(50.0, 50.0), (50.0, 40.0)]));
    assert_eq!(view.clip((-100.0, 60.0), (100.0, 60.0)), None);
    assert_eq!(view.clip((120.0, 0.0), (0.0, 120.0)), None);
    let [enters, _] = view.clip((60.0, 0.0), (0.0, 90.0)).unwrap();
    assert_eq!(enters, (100.0, 35.0));
}

#[test]
fn on_a_phone_everything_is_there_and_within_the_sheet() {
    let mut plan = small();
    plan.stations =
        (0..3).map(|n| Station { name: n.to_string(), ..plan.stations[0].clone() }).collect();
    let (wide, narrow) = (map(&plan).document(), narrow(&plan).document());
    let count = |text: &str| text.matches("client ").count();
    assert_eq!(count(&wide), count(&narrow));
    let tree = roxmltree::Document::parse(&narrow).unwrap();
    let number = |node: roxmltree::Node, key: &str| node.attribute(key)?.parse::<f64>().ok();
    let root = tree.root_element();
    let (width, height) = (number(root, "width").unwrap(), number(root, "height").unwrap());
    // A file has a margin of 12 around it; in the report a phone leaves 358.
    assert!(width - 24.0 <= 358.0, "{width}");
    for node in tree.descendants().filter(|node| node.has_tag_name("text")) {
        let (x, y) = (number(node, "x").unwrap(), number(node, "y").unwrap());
        assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{node:?}");
    }
}
