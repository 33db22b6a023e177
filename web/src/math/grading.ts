/** Grade an answer at the precision at which it was given, if that is sufficient. The counterpart of
 * `course/exercises/number_comparison.py` for one cell; the tests of both languages share one list of cases. */
import { workedSum } from "./sums";
import { ENOUGH, readings, type Typed } from "./typed";

export type Verdict = "right" | "coarse" | "wrong" | "unreadable";

export const FEWEST_DIGITS = 2;
// The workshop uses -999 for minus infinity.
const AS_GOOD_AS_MINUS_INFINITY = -99;
const EXACT = 1e-9;

/** The number in the answer for a cell; null if there is none, or more than one. */
export function readCell(text: string): Typed | null {
  const worked = workedSum(text);
  if (worked !== null) return { value: worked, step: 0, digits: ENOUGH };
  return readings(text).find((way) => way.length === 1)?.[0] ?? null;
}

/** Grade one number against the correct value; `slack` is the tolerance for a value computed from rounded numbers. */
export function compare(number: Typed, value: number, slack = 0, exact = false): Verdict {
  if (value === -Infinity) return number.value <= AS_GOOD_AS_MINUS_INFINITY ? "right" : "wrong";
  const off = Math.abs(number.value - value);
  if (off <= EXACT * Math.max(1e-3, Math.abs(value))) return "right";
  if (exact || !number.value) return "wrong"; // no number but zero matches zero, at any precision
  const fits = [number, rounded(number)].filter((each) => off <= Math.max((each.step / 2) * (1 + EXACT), slack));
  if (fits.some((each) => each.digits >= FEWEST_DIGITS)) return "right";
  return fits.length > 0 ? "coarse" : "wrong";
}

/** Grade the text typed for a cell; if several values are correct, the best verdict is returned. */
export function gradeCell(text: string, values: readonly number[], slack = 0): { verdict: Verdict; typed: Typed | null } {
  const typed = readCell(text);
  if (typed === null) return { verdict: "unreadable", typed: null };
  const verdicts = values.map((value) => compare(typed, value, slack));
  const best = (["right", "coarse"] as const).find((each) => verdicts.includes(each)) ?? "wrong";
  return { verdict: best, typed };
}

/** The same number with its trailing zeros treated as rounding: 16,000 stands for any number near 16 thousand. */
function rounded(number: Typed): Typed {
  if (number.step !== 1 || !number.value || !Number.isFinite(number.value)) return number;
  const text = Math.abs(number.value).toFixed(0);
  const zeros = text.length - text.replace(/0+$/, "").length;
  return { ...number, step: 10 ** zeros, digits: text.length - zeros };
}
