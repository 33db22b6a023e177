/** Arrow keys in a grid. */

/** Where an arrow leads from a cell, within rows and columns; nothing for other keys. */
export function moved(event: KeyboardEvent, row: number, column: number, rows: number, columns: number): [number, number] | null {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (step === undefined) return null;
  event.preventDefault();
  const bound = (value: number, most: number) => Math.max(0, Math.min(most - 1, value));
  return [bound(Math.max(0, row) + (step[0] ?? 0), rows), bound(Math.max(0, column) + (step[1] ?? 0), columns)];
}
