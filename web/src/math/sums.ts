/** A sum typed instead of its result: `1.0×0.2 + 0.5×0.1`, `0.37/1.414`, `e^0.5 / (e^0.5 + 1)`. Whoever types the way
 * has given the number exactly. The library reads the same by `course/exercises/sums.py`; one list of cases holds both. */
import { latinDigits } from "@/words/numbers";

const PIECE = /\s*(\d+\.?\d*|\.\d+|[-+*/^()√e])/g;
// A number, or one with a power of ten: its digits say how exactly it is meant, so it is read as a number.
const BARE = /^[-+]?\s*(?:\d+\.?\d*|\.\d+)(?:\s*\*\s*10\s*\^\s*\(?[-+]?\d+\)?)?$/;
const LONGEST = 400;
const DEEPEST = 40;

/** Signs as a machine writes them, and only what stands after the last equals sign. */
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

/** What a typed sum comes to; null for a bare number and for what is no sum. */
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

/** The terms of a typed sum, each worked out, where it is one of plain additions; to find the one that is off. */
export function termsOf(text: string): number[] {
  const plain = plainly(text);
  if (/[()^√e/]/.test(plain)) return [];
  const terms = plain.split(/(?<=[\d.\s])\+/).map((term) => {
    const bare = term.trim();
    return BARE.test(bare) ? Number(bare) : workedSum(bare);
  });
  return terms.some((each) => each === null || Number.isNaN(each)) ? [] : (terms as number[]);
}

/** Reads pieces from the left: sums of products of powers, each deeper one in brackets. */
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
