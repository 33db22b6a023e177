/** Words of a text that are hidden from a BERT, by their places: `1,3` in the address. */

export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

/** The text with [MASK] where a word is hidden. */
export function maskedText(text: string, places: string): string {
  if (places === "") return text;
  const hidden = new Set(places.split(",").map(Number));
  return wordsOf(text)
    .map((word, i) => (hidden.has(i) ? "[MASK]" : word))
    .join(" ");
}

/** The places with one more, or one less. */
export function toggled(places: string, at: number): string {
  const all = new Set(places.split(",").filter(Boolean).map(Number));
  if (!all.delete(at)) all.add(at);
  return [...all].sort((a, b) => a - b).join(",");
}
