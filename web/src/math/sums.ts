/** Expressions typed instead of a result: `1.0×0.2 + 0.5×0.1`, `0.37/1.414`, `e^0.5 / (e^0.5 + 1)`. Such an answer is
 * exact. The library parses the same with `course/exercises/sums.py`; one list of cases tests both. */
import { latinDigits } from "@/words/numbers";

const PIECE = /\s*(\d+\.?\d*|\.\d+|[-+*/^()√e])/g;
// A number, with or without a power of ten, is not parsed as an expression, because its digits show its precision.
const BARE = /^[-+]?\s*(?:\d+\.?\d*|\.\d+)(?:\s*\*\s*10\s*\^\s*\(?[-+]?\d+\)?)?$/;
const LONGEST = 400;
const DEEPEST = 40;

/** Normalize operators, and keep only the text after the last equals sign. */
function plainly(text: string): string {
  const right = latinDigits(text).toLowerCase().split("=").at(-1) ?? "";
  return right
    .replace(/\bexp\s*(?=\()/g, "e^")
    .replace(/\bsqrt\b/g, "√")
    .replace(/\*\*/g, "^")
    .replace(/[−–]/g, "-")
    .replace(/[×·x]/g, "*")
    .replace(/÷/g, "/")
    .replace(/\[/g, "(")
    .replace(/\]/g, ")")
    .trim();
}

/** The value of a typed expression; null for a plain number and for other text. */
export function workedSum(text: string): number | null {
  const plain = plainly(text);
  if (plain.length > LONGEST || BARE.test(plain)) return null;
  const pieces = [...plain.matchAll(PIECE)].map((found) => found[1] ?? "");
  if (pieces.length === 0 || plain.replace(PIECE, "").trim() !== "") return null;
  const reader = new Reader(pieces);
  try {
    const value = reader.sum();
    return reader.at === pieces.length && Number.isFinite(value) ? value : null;
  } catch {
    return null;
  }
}

/** The values of the terms of a typed sum with plain additions, to find the wrong one. */
export function termsOf(text: string): number[] {
  const plain = plainly(text);
  if (/[()^√e/]/.test(plain)) return [];
  const terms = plain.split(/(?<=[\d.\s])\+/).map((term) => {
    const bare = term.trim();
    return BARE.test(bare) ? Number(bare) : workedSum(bare);
  });
  return terms.some((each) => each === null || Number.isNaN(each)) ? [] : (terms as number[]);
}

/** A parser from left to right: sums of products of powers, with brackets. */
class Reader {
  at = 0;
  #depth = 0;

  constructor(readonly pieces: readonly string[]) {}

  sum(): number {
    let value = this.#product();
    while (this.#next === "+" || this.#next === "-") value += this.#take() === "+" ? this.#product() : -this.#product();
    return value;
  }

  #product(): number {
    let value = this.#signed();
    while (this.#next === "*" || this.#next === "/") value = this.#take() === "*" ? value * this.#signed() : value / this.#signed();
    return value;
  }

  #signed(): number {
    if ((this.#depth += 1) > DEEPEST) throw new Error("too deep");
    let value: number;
    if (this.#next === "+" || this.#next === "-") value = this.#take() === "+" ? this.#signed() : -this.#signed();
    else value = this.#power();
    this.#depth -= 1;
    return value;
  }

  #power(): number {
    const base = this.#atom();
    if (this.#next !== "^") return base;
    this.#take();
    return base ** this.#signed();
  }

  #atom(): number {
    const piece = this.#take();
    if (piece === "(") {
      const value = this.sum();
      if (this.#take() !== ")") throw new Error("a bracket is open");
      return value;
    }
    if (piece === "√") return Math.sqrt(this.#atom());
    if (piece === "e") return Math.E;
    if (!/^[\d.]/.test(piece)) throw new Error("no number");
    return Number(piece);
  }

  get #next(): string {
    return this.pieces[this.at] ?? "";
  }

  #take(): string {
    const piece = this.#next;
    this.at += 1;
    return piece;
  }
}
