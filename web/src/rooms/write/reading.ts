/** A text as a reader sees it: aksharas and sentences. */

const letters = new Intl.Segmenter("bn", { granularity: "grapheme" });

export interface Parting {
  /** Number of equal aksharas at the start; null if all are equal. */
  letters: number | null;
  /** The position of the first difference, in characters. */
  at: number;
}

/** The common prefix of two texts in complete aksharas, regardless of their tokens. */
export function alikeLetters(one: string, other: string): Parting {
  const rest = letters.segment(other)[Symbol.iterator]();
  let count = 0;
  for (const { segment, index } of letters.segment(one)) {
    const beside = rest.next();
    if (beside.done || beside.value.segment !== segment) return { letters: count, at: index };
    count += 1;
  }
  return { letters: rest.next().done ? null : count, at: one.length };
}

/** The complete sentences of a text. */
export function sentences(text: string): string[] {
  return [...text.matchAll(/[^।?!.\n]+[।?!.\n]+/g)].map(([sentence]) => sentence.trim()).filter((sentence) => sentence !== "");
}
