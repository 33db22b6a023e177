/** Diagnose a wrong answer: compute the results of common mistakes for these numbers, and return those that match the answer. */
import { at, compute, isProduct, pairs, plainName, sourceOf, total, type Matrices, type Matrix, type Step } from "./sheet";
import { termsOf } from "./sums";
import type { Typed } from "./typed";

export interface Mistake {
  /** Its key in the catalogue, after `wrong.`. */
  name: string;
  filling: Record<string, string | number>;
}
interface Way extends Mistake {
  value: number;
}

const MOST_NAMED = 2;
const softmax = (scores: readonly number[]): number[] => {
  const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
  return powers.map((power) => power / total(powers));
};

/** The mistakes that lead to the answer, most likely first, at most two; `numbers` are the sheets to try: the correct one and the learner's. */
export function diagnose(typed: Typed, text: string, steps: readonly Step[], step: Step, numbers: readonly Matrices[], row: number, column: number, slack = 0): Mistake[] {
  const found: Mistake[] = [];
  const add = (mistake: Mistake): void => {
    if (found.length < MOST_NAMED && !found.some((each) => each.name === mistake.name)) found.push({ name: mistake.name, filling: mistake.filling });
  };
  for (const given of numbers) {
    const term = wrongTerm(text, step, given, row, column);
    if (term !== null) add(term);
  }
  if (found.length > 0) return found;
  for (const given of numbers) for (const way of ways(steps, step, given, row, column)) if (fits(typed, way.value, slack)) add(way);
  return found;
}

/** Whether an answer equals a number at the precision of the answer. */
function fits(typed: Typed, value: number, slack: number): boolean {
  if (Number.isNaN(value)) return false;
  if (value === -Infinity) return typed.value <= -99;
  const near = Math.abs(typed.value - value);
  if (near <= 1e-9 * Math.max(1e-3, Math.abs(value))) return true;
  return typed.digits >= 2 && near <= Math.max((typed.step / 2) * (1 + 1e-9), slack);
}

/** The first wrong term of a sum that was typed. */
function wrongTerm(text: string, step: Step, given: Matrices, row: number, column: number): Mistake | null {
  if (!isProduct(step.operation)) return null;
  const [left = [], right = []] = step.operands.map((name) => given[name] ?? []);
  const wanted = pairs(step.operation, left, right, row, column).map(([a, b]) => a * b);
  const written = termsOf(text);
  if (written.length !== wanted.length || wanted.length < 2) return null;
  const off = wanted.flatMap((value, k) => (Math.abs(value - (written[k] ?? NaN)) > 1e-9 ? [k] : []));
  return off.length === 1 || (off.length > 1 && off.length < wanted.length) ? { name: "term", filling: { n: (off[0] ?? 0) + 1 } } : null;
}

/** Every common mistake for this cell, with the number that it leads to. */
export function ways(steps: readonly Step[], step: Step, numbers: Matrices, row: number, column: number): Way[] {
  const given = ofHead(step, numbers);
  const truth = compute(step, given, row, column);
  const found = [...(isProduct(step.operation) ? ofProduct(steps, step, given, row, column) : ofCell(step, given, row, column)), ...ofEvery(step, given, row, column, truth)];
  return found.filter((way) => Math.abs(way.value - truth) > 1e-9 || way.value === -Infinity !== (truth === -Infinity));
}

/** The matrices under the names of the step's own head: for the second head, `scores` are its scores. */
function ofHead(step: Step, numbers: Matrices): Matrices {
  const [number] = /_\d$/.exec(step.name) ?? [];
  if (number === undefined) return numbers;
  return { ...numbers, ...Object.fromEntries(Object.entries(numbers).flatMap(([name, matrix]) => (name.endsWith(number) ? [[plainName(name), matrix]] : []))) };
}

function ofProduct(steps: readonly Step[], step: Step, given: Matrices, row: number, column: number): Way[] {
  const [leftName = "", rightName = ""] = step.operands;
  const left = given[leftName] ?? [];
  const right = given[rightName] ?? [];
  const multiplied = pairs(step.operation, left, right, row, column);
  const products = multiplied.map(([a, b]) => a * b);
  const truth = total(products);
  const names = { left: leftName, right: rightName, row: row + 1, column: column + 1 };
  const found: Way[] = [];
  const add = (name: string, value: number, filling: Record<string, string | number> = {}): void => {
    found.push({ name, value, filling: { ...names, ...filling } });
  };
  for (const other of others(steps, step)) add("otherMatrix", compute({ ...step, operands: [leftName, other] }, given, row, column), { used: other });
  if (step.operation === "product_by_rows") add("notTurned", total((left[row] ?? []).map((value, k) => value * at(right, k, column))));
  else add("rowForColumn", total((left[row] ?? []).slice(0, right[column]?.length).map((value, k) => value * at(right, column, k))));
  add("columnForRow", total(multiplied.map(([, b], k) => at(left, k, row) * b)));
  add("summedColumn", total(multiplied.map(([, b]) => b)));
  add("summedRow", total(multiplied.map(([a]) => a)));
  add("added", total(multiplied.map(([a, b]) => a + b)));
  products.forEach((_, k) => add(k === 0 ? "missing" : "stopped", k === 0 ? truth - (products[0] ?? 0) : total(products.slice(0, k)), { n: k === 0 ? 1 : k }));
  products.forEach((product, k) => k > 0 && k < products.length - 1 && add("missing", truth - product, { n: k + 1 }));
  products.forEach((product, k) => add("signOfTerm", truth - 2 * product, { n: k + 1 }));
  for (const decimals of [2, 1]) add("early", total(products.map((product) => Number(product.toFixed(decimals)))), { n: decimals });
  if (plainName(leftName) === "weights" && given.scores !== undefined) {
    const open = softmax(given.scores[row] ?? []);
    add("maskForgotten", total(open.map((weight, k) => weight * at(right, k, column))));
  }
  return found;
}

/** Matrices of the same shape that could be mistaken for the right factor. */
function others(steps: readonly Step[], step: Step): string[] {
  const wanted = steps.find((each) => each.name === step.operands[1]);
  if (wanted === undefined) return [];
  const family = wanted.name.startsWith("W_") ? /^W_/ : /^[QKV](_\d)?$/;
  return steps
    .filter((each) => family.test(each.name) && each.name !== wanted.name && each.values.length === wanted.values.length && each.values[0]?.length === wanted.values[0]?.length)
    .map((each) => each.name);
}

function ofCell(step: Step, given: Matrices, row: number, column: number): Way[] {
  const [left, right, gain] = step.operands.map((name) => given[name]);
  const read = at(left, row, column);
  const line = left?.[row] ?? [];
  const down = (matrix: Matrix | undefined): number[] => (matrix ?? []).map((each) => each[column] ?? NaN);
  const way = (name: string, value: number): Way => ({ name, value, filling: { row: row + 1, column: column + 1 } });
  switch (step.operation) {
    case "over_root": {
      const width = at(right, 0, 0);
      return [way("noRoot", read), way("widthForRoot", read / width), way("timesRoot", read * Math.sqrt(width))];
    }
    case "masked":
      return at(right, row, column) === 1 ? [way("maskedTooMuch", -Infinity), way("maskZero", 0)] : [way("maskForgotten", read), way("maskZero", 0)];
    case "powers":
    case "shifted_powers": {
      const score = at(given.scores, row, column);
      const hidden = read === -Infinity;
      const most = step.operation === "shifted_powers" ? at(right, row, 0) : 0;
      if (hidden) return [way("maskForgotten", Math.exp(score - most)), way("hiddenOne", 1), way("hiddenStays", -Infinity)];
      return [way("noE", read - most), way("noShift", Math.exp(read)), way("minusPower", Math.exp(most - read)), way("two", 2 ** (read - most)), way("ten", 10 ** (read - most)), way("timesE", Math.E * (read - most))];
    }
    case "row_sums": {
      const scores = given.scores?.[row] ?? [];
      const masked = given.masked?.[row] ?? scores;
      return [
        way("maskForgotten", total(scores.map((score) => Math.exp(score)))),
        way("columnSum", total((left ?? []).map((each) => each[row] ?? 0))),
        way("noE", total(masked.filter((score) => score !== -Infinity))),
        way("hiddenOne", total(line.map((value) => (value === 0 ? 1 : value)))),
      ];
    }
    case "shares":
      return ofSoftmax(given, row, column, read, way, down(left));
    case "largest":
      return [way("columnSum", Math.max(...(left ?? []).map((each) => each[row] ?? -Infinity))), way("smallest", Math.min(...line))];
    case "add_row":
      return [way("biasForgotten", read), way("biasTakenOff", read - at(right, 0, column))];
    case "added":
      return [way("residualForgotten", at(right, row, column)), way("partForgotten", read)];
    case "means":
      return [way("meanNotDivided", total(line)), way("columnSum", total(down(left)) / (left?.length ?? 1))];
    case "less":
      return [way("meanNotTaken", read), way("addedInstead", read + at(right, row, 0))];
    case "kept_positive":
      return [way("negativeKept", read), way("madePositive", Math.abs(read))];
    case "column_of_largest":
      return [way("largestItself", Math.max(...line)), way("countedFromZero", line.indexOf(Math.max(...line)))];
    case "waves": {
      const angle = at(left, row, Math.floor(column / 2));
      return [way("sineForCosine", (column % 2 === 0 ? Math.cos : Math.sin)(angle)), way("degrees", (column % 2 === 0 ? Math.sin : Math.cos)((angle * Math.PI) / 180))];
    }
    case "joined": {
      const read = step.operands.map((name) => given[name]);
      const [whose, own] = sourceOf(read, column);
      return [way("otherHead", at(read[1 - whose], row, own))];
    }
    case "normed":
      return [way("gainForgotten", read / at(right, row, 0)), way("sizeForgotten", read * at(gain, 0, column))];
    default:
      return [];
  }
}

function ofSoftmax(given: Matrices, row: number, column: number, power: number, way: (name: string, value: number) => Way, powersDown: number[]): Way[] {
  const scores = given.scores?.[row] ?? [];
  const seen = (given.masked ?? given.scores)?.[row] ?? [];
  const products = (given.products?.[row] ?? []).map((value, k) => (seen[k] === -Infinity ? -Infinity : value));
  const width = at(given.d_k, 0, 0);
  const visible = seen.filter((score) => score !== -Infinity);
  return [
    way("maskForgotten", softmax(scores)[column] ?? NaN),
    way("softmaxDown", power / total(powersDown)),
    way("noE", (seen[column] === -Infinity ? 0 : (seen[column] ?? NaN)) / total(visible)),
    way("notDivided", power),
    way("noRoot", softmax(products)[column] ?? NaN),
    way("widthForRoot", softmax(products.map((value) => value / width))[column] ?? NaN),
    way("hiddenStays", seen[column] === -Infinity ? -Infinity : NaN),
    way("upsideDown", 1 / ((power || NaN) / total(seen.map((score) => Math.exp(score))))),
    way("evenly", 1 / visible.length),
    ...[2, 1].map((decimals): Way => {
      const early = way("earlyScores", softmax(seen.map((score) => (score === -Infinity ? score : Number(score.toFixed(decimals)))))[column] ?? NaN);
      return { ...early, filling: { ...early.filling, n: decimals } };
    }),
  ];
}

/** Mistakes that can happen anywhere: the neighbouring cell, swapped sides, the sign, the decimal point. */
function ofEvery(step: Step, given: Matrices, row: number, column: number, truth: number): Way[] {
  const found: Way[] = [];
  const made = (r: number, c: number): number => compute(step, given, r, c);
  const height = step.values.length;
  const width = step.values[0]?.length ?? 0;
  if (Number.isFinite(truth)) found.push({ name: "sign", value: -truth, filling: {} });
  if (row !== column && column < height && row < width) found.push({ name: "swapped", value: made(column, row), filling: { row: row + 1, column: column + 1 } });
  for (let r = 0; r < height; r += 1) if (r !== row) found.push({ name: "otherRow", value: made(r, column), filling: { n: r + 1, row: row + 1 } });
  for (let c = 0; c < width; c += 1) if (c !== column) found.push({ name: "otherColumn", value: made(row, c), filling: { n: c + 1, column: column + 1 } });
  for (const power of [10, 0.1, 100, 0.01]) found.push({ name: "point", value: truth * power, filling: {} });
  return found;
}
