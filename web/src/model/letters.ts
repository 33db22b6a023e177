/** Complete aksharas from a stream of tokens: the counterpart of `text/tokenizer/decoding.py`. */

const graphemes = new Intl.Segmenter("bn", { granularity: "grapheme" });
// Unicode splits a vowel with ya-phala after its hasanta, but readers see অ্যা and এ্যা as one letter.
const VOWEL_REACHING = /[\u0985\u098f]\u09cd$/;
const YA = "\u09af";

/** The aksharas of a text; concatenated, they give the original text. */
export function lettersOf(text: string): string[] {
  const letters: string[] = [];
  for (const { segment } of graphemes.segment(text)) {
    const before = letters.at(-1);
    if (before !== undefined && segment.startsWith(YA) && VOWEL_REACHING.test(before)) letters[letters.length - 1] = before + segment;
    else letters.push(segment);
  }
  return letters;
}

/** Buffers bytes until they form a character, and an akshara until the next one starts, because a sign may follow. */
export class LetterStream {
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private pending = "";

  /** Returns the characters that these bytes complete, and the aksharas that are now final. */
  push(bytes: Uint8Array): { characters: string; letters: string } {
    const characters = this.decoder.decode(bytes, { stream: true });
    this.pending += characters;
    const letters = lettersOf(this.pending);
    if (letters.length < 2) return { characters, letters: "" };
    this.pending = letters.at(-1)!;
    return { characters, letters: letters.slice(0, -1).join("") };
  }

  /** Returns the remaining text; incomplete characters become U+FFFD. */
  finish(): { characters: string; letters: string } {
    const characters = this.decoder.decode();
    const letters = this.pending + characters;
    this.pending = "";
    return { characters, letters };
  }
}
