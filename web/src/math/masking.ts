/** Masked words of a text for a BERT, by their positions: `1,3` in the address. */

// Punctuation around a word is not masked, so that a sentence still ends after its last word.
const MARKED = /^(\p{P}*)(.*?)(\p{P}*)$/su;

/** The words of a text without the punctuation around them. */
export function wordsOf(text: string): string[] {
  return written(text).map((word) => MARKED.exec(word)?.[2] || word);
}

function written(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

/** The text with [MASK] at masked words. */
export function maskedText(text: string, places: string): string {
  if (places === "") return text;
  const hidden = new Set(places.split(",").map(Number));
  return written(text)
    .map((word, i) => (hidden.has(i) ? maskedWord(word) : word))
    .join(" ");
}

function maskedWord(word: string): string {
  const [, before = "", bare = "", after = ""] = MARKED.exec(word) ?? [];
  return bare === "" ? "[MASK]" : `${before}[MASK]${after}`;
}

/** The positions with one added or removed. */
export function toggled(places: string, at: number): string {
  const all = new Set(places.split(",").filter(Boolean).map(Number));
  if (!all.delete(at)) all.add(at);
  return [...all].sort((a, b) => a - b).join(",");
}
