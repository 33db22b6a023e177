/** A window of a matrix, row by row, and downsampling of a large matrix for a picture. */

export interface Tile {
  rows: number;
  columns: number;
  values: Float32Array;
}

export function at(tile: Tile, row: number, column: number): number {
  return tile.values[row * tile.columns + column] ?? 0;
}

export function rowOf(tile: Tile, row: number): Float32Array {
  return tile.values.subarray(row * tile.columns, (row + 1) * tile.columns);
}

/** The index of the number with the largest absolute value. */
export function strongest(values: Float32Array): number {
  let [best, most] = [0, 0];
  for (const [i, value] of values.entries()) if (Math.abs(value) > most && Number.isFinite(value)) [best, most] = [i, Math.abs(value)];
  return best;
}

/** Downsample to a maximum number of rows and columns; each cell keeps its largest absolute value, so that single strong weights stay visible. */
export function pooled(tile: Tile, mostRows: number, mostColumns: number): Tile {
  const rows = Math.min(tile.rows, Math.max(1, Math.floor(mostRows)));
  const columns = Math.min(tile.columns, Math.max(1, Math.floor(mostColumns)));
  if (rows === tile.rows && columns === tile.columns) return tile;
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < tile.rows; row += 1) {
    const to = Math.floor((row * rows) / tile.rows) * columns;
    for (let column = 0; column < tile.columns; column += 1) {
      const value = at(tile, row, column);
      const place = to + Math.floor((column * columns) / tile.columns);
      if (Number.isFinite(value) && Math.abs(value) > Math.abs(values[place] as number)) values[place] = value;
    }
  }
  return { rows, columns, values };
}

/** A row or column of an address, which counts from 1, as an index; -1 for none, or if it is outside the matrix. */
export function placeWithin(text: string | undefined, size = Infinity): number {
  const place = Number(text ?? 0) || 0;
  return place > size ? -1 : place - 1;
}

/** A number of columns around a given one, within the matrix. */
export function around(column: number, count: number, all: number): number {
  return Math.max(0, Math.min(all - count, column - Math.floor(count / 2)));
}
