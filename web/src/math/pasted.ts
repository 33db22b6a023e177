/** A row, a column or a matrix as a spreadsheet, a page or a notebook hands it over: its cells as they were written. */

/** The cells of a pasted text, row by row; null where it is one number, or words. */
export function pastedTable(text: string): string[][] | null {
  // A matrix in brackets has its rows between them: [[1, 2], [3, 4]].
  const plain = text.replace(/\]\s*,?\s*\[/g, "\n").replace(/[[\]{}|]/g, " ").trim();
  const lines = plain.split(/\r\n|\r|\n/).filter((line) => line.trim() !== "");
  const rows = lines.map((line) => cellsOf(line).map((cell) => cell.trim()));
  const width = rows[0]?.length ?? 0;
  const count = rows.reduce((sum, row) => sum + row.length, 0);
  if (count < 2 || rows.some((row) => row.length !== width)) return null;
  // Words are nobody's matrix; a cell that is left empty may stand.
  return rows.flat().every((cell) => cell === "" || /[\p{Nd}∞]/u.test(cell)) ? rows : null;
}

function cellsOf(line: string): string[] {
  // Between tabs or semicolons a comma is a decimal point; else it parts the cells, or a space does.
  for (const mark of ["\t", ";"]) if (line.includes(mark)) return line.split(mark).map((cell) => cell.trim().replace(/^([-−+]?\p{Nd}+),(\p{Nd}+)$/u, "$1.$2"));
  return line.includes(",") ? line.split(",") : line.trim().split(/\s+/);
}
