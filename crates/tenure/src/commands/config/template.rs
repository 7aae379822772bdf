//! The text of a new configuration file: every setting and its default, as comments.

use std::fmt::Write as _;

use tenure_core::config::KEYS;

pub(super) fn text() -> String {
    let mut text =
        "# tenure's settings. Everything below is the default; remove the `#` of a line, and of the\n\
                    # groups above it, to change it. `tenure config validate` checks the file.\n"
            .to_owned();
    let mut open: Vec<&str> = Vec::new();
    for key in KEYS.iter().filter(|key| !key.name.contains('*') && !key.name.starts_with("project.")) {
        let mut groups: Vec<&str> = key.name.split('.').collect();
        let name = groups.pop().unwrap_or_default();
        let shared = open.iter().zip(&groups).take_while(|(a, b)| a == b).count();
        if shared == 0 {
            text.push_str("#\n");
        }
        for (depth, group) in groups.iter().enumerate().skip(shared) {
            let _ = writeln!(text, "# {}{group}:", "  ".repeat(depth));
        }
        let indent = "  ".repeat(groups.len());
        let value = key.default.map_or_else(String::new, |default| format!(" {default}"));
        let _ = writeln!(text, "# {indent}{name}:{value}  # {}", key.about);
        open = groups;
    }
    text.push_str(
        "#\n# presets:\n#   mine:\n#     command: [\"./agent.sh\", \"--careful\"]  # The prompt is passed on standard input\n\
         #     env: {MODEL: large}\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use tenure_core::config::{Config, Document, Layer, Layers};

    #[test]
    fn a_new_file_sets_nothing_and_is_valid_with_every_comment_taken_away() {
        let text = super::text();
        assert_eq!(Document::parse(&text).unwrap(), Document::default());
        let plain: Vec<&str> =
            text.lines().skip(2).map(|l| l.strip_prefix("# ").unwrap_or_default()).collect();
        let document = Document::parse(&plain.join("\n")).unwrap();
        let layer = Layer { path: "new", document: &document };
        Config::resolve(Layers { user: Some(layer), ..Layers::default() }).unwrap();
    }
}
