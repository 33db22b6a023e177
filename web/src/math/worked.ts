/** The worked calculation of a cell, as lines: the terms, the intermediate sums, and the complete expression. */
import { at, factor, isProduct, broadcastAt, pairs, sourceOf, written, type Matrices, type Step } from "./sheet";

/** Maximum number of terms that are written out; of a longer sum, only the first and last terms are shown. */
const MOST_TERMS = 8;

/** The right-hand side of the equation, by operation; for a step without an operation, the operand. */
const SIDES: Record<string, (first: string, second: string, third: string) => string> = {
  product: (first, second) => `${first} × ${second}`,
  product_by_rows: (first, second) => `${first} × ${second}ᵀ`,
  add_row: (first, second) => `${first} + ${second}`,
  root_mean_square: (first) => `√(Σ${first}²/n + ε)`,
  normed: (first, second, third) => `${first} / ${second} × ${third}`,
  turned: (first, second) => `${first} ↻ ${second}`,
  over_root: (first, second) => `${first} / √${second}`,
  masked: (first, second) => `${first} ▨ ${second}`,
  largest: (first) => `max ${first}`,
  row_sums: (first) => `Σ ${first}`,
  powers: (first) => `e^${first}`,
  shifted_powers: (first, second) => `e^(${first} − ${second})`,
  shares: (first, second) => `${first} / ${second}`,
  added: (first, second) => `${first} + ${second}`,
  means: (first) => `Σ${first} / n`,
  less: (first, second) => `${first} − ${second}`,
  kept_positive: (first) => `max(0, ${first})`,
  column_of_largest: (first) => `argmax ${first}`,
  speeds: (first, second) => `1 / 10000^(2×${first}/${second})`,
  waves: (first) => `sin, cos ${first}`,
  joined: (first, second) => `${first} | ${second}`,
};

/** The formula of a step with its own symbols, or with those of `called`. */
export function formula(step: Step, called: (name: string) => string = (name) => name): string {
  const [first = "", second = "", third = ""] = step.operands.map(called);
  return `${called(step.name)} = ${SIDES[step.operation ?? ""]?.(first, second, third) ?? first}`;
}

/** The written terms of a cell's sum; empty if there is no sum. */
export function terms(step: Step, given: Matrices, row: number, column: number, decimals: number): { text: string; value: number }[] {
  const [left = [], right = []] = step.operands.map((name) => given[name] ?? []);
  if (isProduct(step.operation)) {
    return pairs(step.operation, left, right, row, column).map(([a, b]) => ({ text: `${factor(a, decimals)}×${factor(b, decimals)}`, value: a * b }));
  }
  if (step.operation === "row_sums") return (left[row] ?? []).map((value) => ({ text: factor(value, decimals), value }));
  return [];
}

/** The arithmetic of one cell, without the result. */
export function arithmetic(step: Step, given: Matrices, row: number, column: number, decimals: number): string {
  const summed = terms(step, given, row, column, decimals).map((each) => each.text);
  if (summed.length > 0) return shortened(summed).join(" + ");
  const [left, right, gain] = step.operands.map((name) => given[name] ?? []);
  const one = (matrix = left): number => broadcastAt(matrix, row, column);
  const line = left?.[row] ?? [];
  const say = (value: number): string => written(value, decimals);
  switch (step.operation) {
    case "add_row":
    case "added":
      return `${factor(one(), decimals)} + ${factor(one(right), decimals)}`;
    case "root_mean_square":
      return `√((${shortened(line.map((value) => `${factor(value, decimals)}²`)).join(" + ")})/${line.length} + ${one(right)})`;
    case "normed":
      return `${say(one())} / ${say(one(right))} × ${factor(one(gain), decimals)}`;
    case "turned": {
      const half = right?.[0]?.length ?? 1;
      const first = column < half;
      const angle = say(at(right, row, first ? column : column - half));
      return `${factor(one(), decimals)}×cos(${angle}) ${first ? "−" : "+"} ${factor(at(left, row, first ? column + half : column - half), decimals)}×sin(${angle})`;
    }
    case "over_root":
      return `${say(one())} / √${one(right)}`;
    case "masked":
      return `${say(one())} (mask ${one(right)})`;
    case "largest":
      return `max(${shortened(line.map(say)).join(", ")})`;
    case "powers":
      return `e^${factor(one(), decimals)}`;
    case "shifted_powers":
      return `e^(${say(one())} − ${factor(one(right), decimals)})`;
    case "means":
      return `(${shortened(line.map((value) => factor(value, decimals))).join(" + ")})/${line.length}`;
    case "less":
      return `${say(one())} − ${factor(one(right), decimals)}`;
    case "kept_positive":
      return `max(0, ${say(one())})`;
    case "column_of_largest":
      return `argmax(${shortened(line.map(say)).join(", ")})`;
    case "speeds":
      return `1 / 10000^(2×${one()}/${one(right)})`;
    case "waves":
      return `${column % 2 === 0 ? "sin" : "cos"}(${say(at(left, row, Math.floor(column / 2)))})`;
    case "joined": {
      const [whose, own] = sourceOf(step.operands.map((name) => given[name]), column);
      return say(at(given[step.operands[whose] ?? ""], row, own));
    }
    default:
      return `${say(one())} / ${say(one(right))}`;
  }
}

function shortened(texts: string[]): string[] {
  return texts.length > MOST_TERMS ? [...texts.slice(0, 3), "…", ...texts.slice(-3)] : texts;
}
