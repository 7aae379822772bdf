//! Corpora, and random changes of their texts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tenure_testkit::cli::{Dice, full_or};

/// Longer inputs are cut: a defect that they would find is found by shorter ones too.
const LONGEST: usize = 64 * 1024;
/// How many changes one input gets at most.
const MOST_CHANGES: u64 = 8;

/// The texts that a target starts from, and words that its format gives a meaning to.
pub(crate) struct Corpus {
    seeds: Vec<Vec<u8>>,
    words: &'static [&'static str],
}

impl Corpus {
    /// All files of these folders, which are relative to the workspace.
    pub(crate) fn of(folders: &[&str], words: &'static [&'static str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut seeds = Vec::new();
        for folder in folders {
            let mut files: Vec<_> =
                std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
            // The order of a folder's entries differs between machines, and a seed has to repeat a run.
            files.sort();
            seeds.extend(files.iter().filter(|file| file.is_file()).map(|file| std::fs::read(file).unwrap()));
        }
        assert!(!seeds.is_empty(), "{folders:?} have no files");
        Self { seeds, words }
    }

    /// One seed for each line of the files.
    pub(crate) fn by_line(mut self) -> Self {
        let lines = self.seeds.iter().flat_map(|text| text.split(|byte| *byte == b'\n'));
        self.seeds = lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
        self
    }

    /// The seeds as they are, then `rounds` changed ones, twenty times as many in a full run. If `target` panics, the
    /// input is printed.
    #[expect(clippy::print_stderr, reason = "the input belongs to the output of a failed test")]
    pub(crate) fn run(&self, name: &str, rounds: u64, mut target: impl FnMut(&[u8])) {
        let mut dice = Dice::for_test(name);
        let changed = (0..full_or(rounds * 20, rounds)).map(|_| self.changed(&mut dice));
        for input in self.seeds.iter().cloned().chain(changed) {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
                eprintln!("{name} fails for b\"{}\"", input.escape_ascii());
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// A seed as it is.
    pub(crate) fn seed(&self, dice: &mut Dice) -> &[u8] {
        dice.pick::<Vec<u8>>(&self.seeds)
    }

    /// A seed with some random changes.
    pub(crate) fn changed(&self, dice: &mut Dice) -> Vec<u8> {
        let mut text = dice.pick(&self.seeds).clone();
        // One change often leaves a text that can be read, which gets further than one that is refused at once.
        let changes = if dice.one_in(2) { 1 } else { 1 + dice.below(MOST_CHANGES) };
        for _ in 0..changes {
            self.change(&mut text, dice);
            text.truncate(LONGEST);
        }
        text
    }

    fn change(&self, text: &mut Vec<u8>, dice: &mut Dice) {
        let at = position(text.len() + 1, dice);
        let end = at + position(text.len() - at + 1, dice).min(64);
        match dice.below(9) {
            // A bit, a byte, or a byte with a meaning.
            0 if at < text.len() => text[at] ^= 1 << dice.below(8),
            1 if at < text.len() => text[at] = dice.roll().to_le_bytes()[0],
            2 => text.insert(at, *dice.pick(b"\0\n\r\t \"'\\{}[]:,-#&*!|>%@`~\x1b\x7f\xff\xc3")),
            // A character of several bytes, where a slice may end within it.
            7 => {
                let letter = *dice.pick(&["é", "\u{202e}", "\u{feff}", "日", "😀", "e\u{301}"]);
                text.splice(at..at, letter.bytes());
            }
            // A piece is missing, repeated or replaced.
            3 => drop(text.drain(at..end)),
            4 => {
                let piece = text[at..end].repeat(1 + position(200, dice));
                text.splice(at..at, piece);
            }
            5 => drop(text.splice(at..end, dice.pick(self.words).bytes())),
            6 => {
                let other = dice.pick(&self.seeds);
                let from = position(other.len() + 1, dice);
                text.splice(at..end, other[from..].iter().copied());
            }
            _ => text.truncate(at),
        }
    }
}

fn position(bound: usize, dice: &mut Dice) -> usize {
    usize::try_from(dice.below(bound as u64)).unwrap()
}
