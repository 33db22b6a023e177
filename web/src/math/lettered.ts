/** A short text as a mini model reads it: each akshara is a token, and 0 is the boundary token at both ends. */

export interface Lettered {
  /** The text of each token; the first is the boundary token. */
  letters: string[];
  /** Each text between two boundary tokens. */
  texts: number[][];
  /** Whether text was omitted because it was too long. */
  cut: boolean;
}

export const MARK = "⏎";
export const MOST_TEXTS = 2;
export const MOST_LETTERS = 24;
const MOST_KINDS = 32;

export function lettered(text: string): Lettered {
  const lines = text.normalize("NFC").split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const segmenter = new Intl.Segmenter("bn", { granularity: "grapheme" });
  const letters = [MARK];
  let cut = lines.length > MOST_TEXTS;
  const texts = lines.slice(0, MOST_TEXTS).map((line) => {
    const found = [...segmenter.segment(line)].map((each) => each.segment);
    const tokens: number[] = [];
    for (const letter of found) {
      if (tokens.length >= MOST_LETTERS || (!letters.includes(letter) && letters.length >= MOST_KINDS)) {
        cut = true;
        break;
      }
      if (!letters.includes(letter)) letters.push(letter);
      tokens.push(letters.indexOf(letter));
    }
    return [0, ...tokens, 0];
  });
  return { letters, texts, cut };
}
