/** The names of matrices: symbols unchanged, others in the page's language. */
import words from "@words/hand.json";
import { key } from "@/math/sheet";
import { phrases } from "@/words/index.svelte";

const say = phrases(words);

export function nameOf(name: string): string {
  const [whole = "", plain = "", number = ""] = /^(.*?)(?:_(\d))?$/.exec(name) ?? [];
  const word = `name.${plain}`;
  return (word in words ? say(word as keyof typeof words) : plain || whole) + (SMALL[Number(number || NaN)] ?? "");
}
const SMALL = "₀₁₂₃₄₅₆₇₈₉";

/** The name of a cell, as on paper. */
export const cellName = (name: string, row: number, column: number): string => key(nameOf(name), row, column);

const SYMBOLS: Record<string, string> = {
  "tokens.weight": "E",
  "positions.table.weight": "P",
  "attention.query.weight": "W_Q",
  "attention.key.weight": "W_K",
  "attention.value.weight": "W_V",
  "attention.output.weight": "W_O",
  "attention_norm.weight": "g₁",
  "attention_norm.bias": "b₁",
  "feedforward.up.weight": "W_1",
  "feedforward.up.bias": "b_1",
  "feedforward.down.weight": "W_2",
  "feedforward.down.bias": "b_2",
  "feedforward_norm.weight": "g₂",
  "feedforward_norm.bias": "b₂",
  "head.weight": "W_H",
  "head.bias": "b_H",
};

/** The symbol of a mini model's matrix, by torch's name. */
export function symbol(name: string): string {
  const short = name.replace("stack.blocks.0.", "");
  return SYMBOLS[short] ?? short;
}
