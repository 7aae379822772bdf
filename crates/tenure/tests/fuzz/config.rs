//! Configuration files, which people and repositories write.

use tenure_core::config::{Config, Document, Layer, Layers, set};

use crate::mutations::Corpus;

const WORDS: &[&str] = &[
    "runners:",
    "hooks:",
    "&a",
    "*a",
    "<<: *a",
    "!!binary",
    "? ",
    "- ",
    "|\n",
    ">-\n",
    "{value: 1}",
    "_description: x",
    "null",
    "~",
    "1e400",
    "-0x1",
    "99999999999d",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "\u{feff}",
];

#[test]
fn a_configuration_is_resolved_and_edited_or_refused() {
    Corpus::of(&["fuzz/corpus/config"], WORDS).run("config", 3000, |text| {
        let Ok(text) = str::from_utf8(text) else { return };
        let parsed = Document::parse(text);
        if let Ok(document) = &parsed {
            let layer = Some(Layer { path: "config.yaml", document });
            for layers in
                [Layers { project: layer, ..Layers::default() }, Layers { user: layer, ..Layers::default() }]
            {
                if let Ok(config) = Config::resolve(layers) {
                    let _ = config.get("runners").map(|found| (found.value(), found.display()));
                }
            }
        }
        // An edit leaves a file that can be read, and that has the new value.
        if let Ok(edited) = set(text, "locking.leaseTtl", "5m") {
            let document = Document::parse(&edited).expect("an edited file can be read");
            let layer = Some(Layer { path: "config.yaml", document: &document });
            if let Ok(config) = Config::resolve(Layers { project: layer, ..Layers::default() }) {
                assert_eq!(config.locking.lease_ttl.as_secs(), 300, "{edited}");
            }
        }
    });
}
