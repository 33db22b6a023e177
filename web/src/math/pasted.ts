/** A row, a column or a matrix pasted from a spreadsheet, a page or a notebook, as the text of its cells. */

/** The cells of a pasted text, row by row; null if it is a single number or words. */
export function pastedTable(text: string): string[][] | null {
  // The rows of a bracketed matrix are separated by brackets: [[1, 2], [3, 4]].
  const plain = text.replace(/\]\s*,?\s*\[/g, "\n").replace(/[[\]{}|]/g, " ").trim();
  const lines = plain.split(/\r\n|\r|\n/).filter((line) => line.trim() !== "");
  const rows = lines.map((line) => cellsOf(line).map((cell) => cell.trim()));
  const width = rows[0]?.length ?? 0;
  const count = rows.reduce((sum, row) => sum + row.length, 0);
  if (count < 2 || rows.some((row) => row.length !== width)) return null;
  // Words are not a matrix; empty cells are allowed.
  return rows.flat().every((cell) => cell === "" || /[\p{Nd}∞]/u.test(cell)) ? rows : null;
}

function cellsOf(line: string): string[] {
  // Between tabs or semicolons a comma is a decimal point; otherwise a comma or a space separates cells.
  for (const mark of ["\t", ";"]) if (line.includes(mark)) return line.split(mark).map((cell) => cell.trim().replace(/^([-−+]?\p{Nd}+),(\p{Nd}+)$/u, "$1.$2"));
  return line.includes(",") ? line.split(",") : line.trim().split(/\s+/);
}
