/** Whole letters from a stream of tokens: the twin of `text/tokenizer/decoding.py`. */

const graphemes = new Intl.Segmenter("bn", { granularity: "grapheme" });
// Unicode cuts a vowel's ya-phala after its hasanta, where no reader would: A and E with it are one letter.
const VOWEL_REACHING = /[\u0985\u098f]\u09cd$/;
const YA = "\u09af";

/** The letters that a reader sees; joined, they give the text back. */
export function lettersOf(text: string): string[] {
  const letters: string[] = [];
  for (const { segment } of graphemes.segment(text)) {
    const before = letters.at(-1);
    if (before !== undefined && segment.startsWith(YA) && VOWEL_REACHING.test(before)) letters[letters.length - 1] = before + segment;
    else letters.push(segment);
  }
  return letters;
}

/** Bytes wait until they are a character, and the last letter until the next one begins: a sign may still follow it. */
export class LetterStream {
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private pending = "";

  /** The characters that these bytes complete, and the letters that are now certain. */
  push(bytes: Uint8Array): { characters: string; letters: string } {
    const characters = this.decoder.decode(bytes, { stream: true });
    this.pending += characters;
    const letters = lettersOf(this.pending);
    if (letters.length < 2) return { characters, letters: "" };
    this.pending = letters.at(-1)!;
    return { characters, letters: letters.slice(0, -1).join("") };
  }

  /** What was still waiting; bytes that never became a character come out as U+FFFD. */
  finish(): { characters: string; letters: string } {
    const characters = this.decoder.decode();
    const letters = this.pending + characters;
    this.pending = "";
    return { characters, letters };
  }
}
