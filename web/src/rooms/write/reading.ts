/** A text as a reader takes it: by letters and by sentences. */

const letters = new Intl.Segmenter("bn", { granularity: "grapheme" });

export interface Parting {
  /** How many letters are alike; null where all are. */
  letters: number | null;
  /** Where they part, in characters. */
  at: number;
}

/** How far two texts are alike, by whole letters: what they were cut into does not matter. */
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

/** The sentences of a text that are done. */
export function sentences(text: string): string[] {
  return [...text.matchAll(/[^।?!.\n]+[।?!.\n]+/g)].map(([sentence]) => sentence.trim()).filter((sentence) => sentence !== "");
}
