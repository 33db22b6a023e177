/** Split texts into aksharas, characters and bytes, without a model. */

const VISIBLE: Record<string, string> = { " ": "␣", "\n": "⏎", "\t": "⇥", "\u200d": "‹zwj›", "\u200c": "‹zwnj›" };
const DEPENDENT = /^\p{M}/u;

/** The display form of a single token: spaces as symbols, a vowel sign on a dotted circle. */
export function shown(piece: string): string {
  const text = [...piece].map((sign) => VISIBLE[sign] ?? sign).join("");
  return DEPENDENT.test(text) ? `\u25cc${text}` : text;
}

/** The code points of a text, and whether the boundary after each is inside an akshara. */
export function codePoints(letters: readonly string[]): { text: string; cut: boolean }[] {
  return letters.flatMap((letter) => {
    const signs = [...letter];
    return signs.map((sign, i) => ({ text: shown(sign), cut: i < signs.length - 1 }));
  });
}

/** The bytes of a text in hex, and whether the boundary after each is inside an akshara. */
export function bytesOf(letters: readonly string[]): { text: string; cut: boolean }[] {
  const encoder = new TextEncoder();
  return letters.flatMap((letter) => {
    const bytes = [...encoder.encode(letter)];
    return bytes.map((byte, i) => ({ text: byte.toString(16).toUpperCase().padStart(2, "0"), cut: i < bytes.length - 1 }));
  });
}
