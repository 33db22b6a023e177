/** Arrow keys in a grid. */

/** The step of an arrow key, down and across; null for other keys. */
export function arrow({ key }: KeyboardEvent): readonly [number, number] | null {
  const steps: Record<string, readonly [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  return steps[key] ?? null;
}

/** The cell that an arrow key leads to, within rows and columns; null for other keys. */
export function moved(event: KeyboardEvent, row: number, column: number, rows: number, columns: number): [number, number] | null {
  const step = arrow(event);
  if (step === null) return null;
  event.preventDefault();
  const bound = (value: number, most: number) => Math.max(0, Math.min(most - 1, value));
  return [bound(Math.max(0, row) + step[0], rows), bound(Math.max(0, column) + step[1], columns)];
}
