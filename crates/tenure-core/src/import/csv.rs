//! CSV according to RFC 4180, also with bare line feeds. A quote in an unquoted cell is text; an open quote ends with the
//! file.

pub(super) struct CsvRecord {
    /// The line on which it begins, counted from 1.
    pub(super) line: usize,
    pub(super) cells: Vec<String>,
}

/// All records. Empty lines are not records.
pub(super) fn records(text: &str) -> Vec<CsvRecord> {
    let (mut records, mut cells, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut began, mut is_quoted) = (1, 1, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if cell.is_empty() => is_quoted = true,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                end(&mut records, &mut cells, &mut cell, began);
                began = line;
            }
            c => cell.push(c),
        }
    }
    end(&mut records, &mut cells, &mut cell, began);
    records
}

fn end(records: &mut Vec<CsvRecord>, cells: &mut Vec<String>, cell: &mut String, line: usize) {
    if !cells.is_empty() || !cell.is_empty() {
        cells.push(std::mem::take(cell));
        records.push(CsvRecord { line, cells: std::mem::take(cells) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_commas_and_lines_are_read() {
        let read = records("a,b\r\n\"x, \"\"y\"\"\",\"two\r\nlines\"\n\n3,\n");
        let cells: Vec<_> = read.iter().map(|record| (record.line, record.cells.join("|"))).collect();
        assert_eq!(cells, [(1, "a|b".into()), (2, "x, \"y\"|two\r\nlines".into()), (5, "3|".into())]);
    }
}
