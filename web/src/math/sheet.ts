/** A worksheet on self-attention that the page can recompute: matrices, each computed from earlier ones.
 * The operations have the names of the library's worksheet, which also supplies the sheet's numbers. */

export type Matrix = readonly (readonly number[])[];
export type Matrices = Readonly<Record<string, Matrix>>;
export type Cell = readonly [row: number, column: number];

export interface Step {
  name: string;
  rows: readonly string[];
  columns: readonly string[];
  values: Matrix;
  /** Null if the matrix is given. */
  operation: string | null;
  operands: readonly string[];
}

/** The values as sent by the server: null stands for −∞. */
export interface StepData extends Omit<Step, "values"> {
  values: readonly (readonly (number | null)[])[];
}

export function fromData(steps: readonly StepData[]): Step[] {
  return steps.map((step) => ({ ...step, values: step.values.map((row) => row.map((value) => value ?? -Infinity)) }));
}

export const at = (matrix: Matrix | undefined, row: number, column: number): number => matrix?.[row]?.[column] ?? NaN;
/** A matrix with one row or one column is broadcast. */
export const broadcastAt = (matrix: Matrix | undefined, row: number, column: number): number =>
  at(matrix, Math.min(row, (matrix?.length ?? 1) - 1), Math.min(column, (matrix?.[0]?.length ?? 1) - 1));

export const isProduct = (operation: string | null): boolean => operation === "product" || operation === "product_by_rows";

/** The pairs of numbers that are multiplied for a cell of a product. */
export function pairs(operation: string | null, left: Matrix, right: Matrix, row: number, column: number): [number, number][] {
  return (left[row] ?? []).map((value, k) => [value, operation === "product_by_rows" ? at(right, column, k) : at(right, k, column)]);
}

export const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** For concatenated matrices: the matrix of a column, and the column's index in it. */
export function sourceOf(read: readonly (Matrix | undefined)[], column: number): [whose: number, own: number] {
  let own = column;
  for (const [whose, matrix] of read.entries()) {
    const width = matrix?.[0]?.length ?? 0;
    if (own < width) return [whose, own];
    own -= width;
  }
  return [read.length - 1, NaN];
}

/** A matrix's name without the number of its head or norm: Q for Q_2. */
export const plainName = (name: string): string => name.replace(/_\d$/, "");

type Cellwise = (read: readonly (Matrix | undefined)[], row: number, column: number) => number;
const CELLWISE: Record<string, Cellwise> = {
  add_row: ([left, bias], r, c) => at(left, r, c) + broadcastAt(bias, r, c),
  root_mean_square: ([of, eps], r) => Math.sqrt(total((of?.[r] ?? []).map((x) => x * x)) / (of?.[r]?.length ?? 1) + broadcastAt(eps, 0, 0)),
  normed: ([left, size, gain], r, c) => (at(left, r, c) / broadcastAt(size, r, 0)) * broadcastAt(gain, 0, c),
  turned: ([left, angles], r, c) => {
    const half = angles?.[0]?.length ?? 1;
    const first = c < half;
    const angle = at(angles, r, first ? c : c - half);
    const partner = at(left, r, first ? c + half : c - half);
    return at(left, r, c) * Math.cos(angle) + (first ? -1 : 1) * partner * Math.sin(angle);
  },
  over_root: ([left, width], r, c) => at(left, r, c) / Math.sqrt(broadcastAt(width, 0, 0)),
  masked: ([left, mask], r, c) => (at(mask, r, c) === 1 ? at(left, r, c) : -Infinity),
  largest: ([of], r) => Math.max(...(of?.[r] ?? [])),
  row_sums: ([of], r) => total(of?.[r] ?? []),
  powers: ([of], r, c) => Math.exp(at(of, r, c)),
  shifted_powers: ([of, most], r, c) => Math.exp(at(of, r, c) - broadcastAt(most, r, 0)),
  added: ([left, right], r, c) => at(left, r, c) + at(right, r, c),
  means: ([of], r) => total(of?.[r] ?? []) / (of?.[r]?.length ?? 1),
  less: ([left, right], r, c) => at(left, r, c) - broadcastAt(right, r, c),
  kept_positive: ([of], r, c) => Math.max(0, at(of, r, c)),
  column_of_largest: ([of], r) => 1 + (of?.[r] ?? []).indexOf(Math.max(...(of?.[r] ?? []))),
  speeds: ([pair, width], r, c) => 10_000 ** ((-2 * at(pair, r, c)) / broadcastAt(width, 0, 0)),
  waves: ([angles], r, c) => (c % 2 === 0 ? Math.sin : Math.cos)(at(angles, r, Math.floor(c / 2))),
  joined: (read, r, c) => {
    const [whose, column] = sourceOf(read, c);
    return at(read[whose], r, column);
  },
  shares: ([of, sums], r, c) => at(of, r, c) / broadcastAt(sums, r, 0),
};

/** One cell of a step, computed from the step's operands. */
export function compute(step: Step, given: Matrices, row: number, column: number): number {
  const read = step.operands.map((name) => given[name]);
  if (isProduct(step.operation)) {
    const [left = [], right = []] = read;
    return total(pairs(step.operation, left, right, row, column).map(([a, b]) => a * b));
  }
  const work = CELLWISE[step.operation ?? ""];
  if (work === undefined) throw new Error(`no such operation: ${step.operation}`);
  return work(read, row, column);
}

export interface Highlight {
  name: string;
  /** Null highlights the whole line. */
  row: number | null;
  column: number | null;
}

/** The operands of a cell: a row, a column, or single cells. */
export function reads(step: Step, sizes: Matrices, row: number, column: number): Highlight[] {
  const [first = "", second = "", third = ""] = step.operands;
  const single = (name: string): Highlight => ({
    name,
    row: Math.min(row, (sizes[name]?.length ?? 1) - 1),
    column: Math.min(column, (sizes[name]?.[0]?.length ?? 1) - 1),
  });
  switch (step.operation) {
    case "product":
      return [{ name: first, row, column: null }, { name: second, row: null, column }];
    case "product_by_rows":
      return [{ name: first, row, column: null }, { name: second, row: column, column: null }];
    case "root_mean_square":
      return [{ name: first, row, column: null }, single(second)];
    case "largest":
    case "row_sums":
    case "means":
    case "column_of_largest":
      return [{ name: first, row, column: null }];
    case "waves":
      return [{ name: first, row, column: Math.floor(column / 2) }];
    case "joined": {
      const [whose, own] = sourceOf(step.operands.map((name) => sizes[name]), column);
      return [{ name: step.operands[whose] ?? "", row, column: own }];
    }
    case "turned": {
      const half = sizes[second]?.[0]?.length ?? 1;
      const pair = column < half ? column : column - half;
      return [{ name: first, row, column }, { name: first, row, column: column < half ? column + half : pair }, { name: second, row, column: pair }];
    }
    default:
      return [first, second, third].filter((name) => name !== "").map(single);
  }
}

/** The cells that a line covers. */
export function cellsOf(lit: Highlight, matrix: Matrix): Cell[] {
  const rows = lit.row === null ? matrix.map((_, row) => row) : [lit.row];
  const columns = lit.column === null ? (matrix[0] ?? []).map((_, column) => column) : [lit.column];
  return rows.flatMap((row) => columns.map((column): Cell => [row, column]));
}

/** The sheet with other given numbers: everything that depends on them is recomputed, the rest stays exactly the same. */
export function flow(steps: readonly Step[], edits: Readonly<Record<string, number>>): Step[] {
  const made: Record<string, Matrix> = {};
  const touched = new Set<string>();
  return steps.map((step) => {
    const given = step.operation === null;
    const flows = given ? step.values.some((line, r) => line.some((_, c) => key(step.name, r, c) in edits)) : step.operands.some((name) => touched.has(name));
    if (flows) touched.add(step.name);
    const values = !flows ? step.values : step.values.map((line, r) => line.map((value, c) => (given ? (edits[key(step.name, r, c)] ?? value) : compute(step, made, r, c))));
    made[step.name] = values;
    return { ...step, values };
  });
}

export const matricesOf = (steps: readonly Step[]): Record<string, Matrix> =>
  Object.fromEntries(steps.map((step) => [step.name, step.values]));

/** The name of a cell, with indices from 1 as on paper. */
export const key = (name: string, row: number, column: number): string => `${name}[${row + 1},${column + 1}]`;

const MOST_LEADING_ZEROS = 4;

/** A number in worked arithmetic, formatted as in the library: a limited number of decimals, and a few more for small numbers. */
export function written(value: number, decimals: number): string {
  if (value === -Infinity) return "−∞";
  const zeros = value === 0 || decimals === 0 ? 0 : Math.max(0, -1 - Math.floor(Math.log10(Math.abs(value))));
  const [whole = "0", rest = ""] = Math.abs(value).toFixed(decimals + Math.min(zeros, MOST_LEADING_ZEROS)).split(".");
  const text = decimals === 0 ? whole : `${whole}.${rest.replace(/0+$/, "") || "0"}`;
  return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
}

/** A number in a sum or product: negative numbers are put in brackets. */
export function factor(value: number, decimals: number): string {
  const text = written(value, decimals);
  return text.startsWith("−") ? `(${text})` : text;
}

/** Decimals of numbers that the page fills in. */
export const DECIMALS = 4;

const COUNTS = ["mask", "d_k", "places", "pairs", "width", "guess"];

/** A number of a step as shown in its cell: counts and masks have no decimals. */
export const inCell = (step: Step, value: number): string =>
  written(value, COUNTS.includes(plainName(step.name)) && Number.isInteger(value) ? 0 : DECIMALS);

/** The number that is displayed if the page fills in the cell. */
export function asShown(value: number): number {
  return Number.isFinite(value) ? Number(written(value, DECIMALS).replace("−", "-")) : value;
}

// Tolerance for calculations with three decimals, or with 1.414 for a root; as in the library's questions.
const CARRIED = 0.0005;
// For products of rounded numbers.
const OF_ROUNDED = ["output", "attended", "wide", "fed", "logits"];

/** The tolerance for an answer computed from rounded numbers. */
export function slackOf(step: Step): number {
  return isProduct(step.operation) && !OF_ROUNDED.includes(plainName(step.name)) ? 0 : CARRIED;
}
