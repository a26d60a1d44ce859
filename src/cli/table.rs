//! Columns of text.

/// Rows with their cells one under another, two spaces apart; the first row is the heading.
pub(super) fn render<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn cells_stand_one_under_another() {
        let rows = [["a", "bb", ""], ["ccc", "", "ü"], ["ü", "x", "y"]].map(|row| row.map(str::to_owned));
        assert_eq!(super::render(&rows), "a    bb\nccc      ü\nü    x   y\n");
    }
}
