/**
 * Text to token ids and back: the counterpart of `text/tokenizer`, for the kinds that Kotha trains. Text is always plain
 * text: a special token that is spelled out becomes unknown, never the special token.
 */
import type { Vocabulary } from "./description";

// As in `text/tokenizer/pipeline.py`. White space is Unicode's, which differs slightly from JavaScript's \s.
const SPACE = "\\p{White_Space}";
const SPLITS = {
  words: `${SPACE}?[\\p{L}\\p{M}\\u200c\\u200d]+|${SPACE}?\\p{N}+|${SPACE}?[^${SPACE}\\p{L}\\p{M}\\p{N}]+|${SPACE}`,
  qwen35:
    "'(?:[sS\\u017f]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}" +
    `| ?[^${SPACE}\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${SPACE}*[\\r\\n]+|${SPACE}+(?!\\P{White_Space})|${SPACE}+`,
  gpt2: `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|${SPACE}+(?!\\P{White_Space})|${SPACE}+`,
  characters: "[\\s\\S]",
};
/** Added to the lowest score for a character that no vocabulary entry contains, as in `tokenizers`. */
const UNKNOWN_PENALTY = 10;
const encoder = new TextEncoder();

export class Tokenizer {
  private readonly ids: Map<string, number>;
  private readonly special: Set<number>;
  private readonly bytes: Uint8Array[];
  private readonly rules: [RegExp, string][];
  private readonly split: RegExp | null;
  private readonly added: Map<string, number>;
  private readonly addedPattern: RegExp | null;
  private readonly ranks: Map<string, number>;
  private readonly longest: number;
  private readonly worst: number;

  constructor(readonly vocabulary: Vocabulary) {
    const { pieces, merges, scores, rules, split, special, spelling, added } = vocabulary;
    this.ids = new Map(pieces.map((piece, id) => [piece, id]));
    this.special = new Set(special);
    this.bytes = pieces.map((piece) => spelledBytes(piece, spelling));
    this.rules = rules.map(([pattern, replacement]) => [new RegExp(pattern, "gu"), replacement]);
    this.split = split === null ? null : new RegExp(SPLITS[split], "gu");
    this.added = new Map(added);
    const longestFirst = [...this.added.keys()].sort((a, b) => b.length - a.length);
    const escaped = longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
    this.addedPattern = escaped.length === 0 ? null : new RegExp(escaped.join("|"), "gu");
    this.ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
    this.longest = pieces.reduce((most, piece) => Math.max(most, piece.length), 1);
    this.worst = scores.reduce((least, score) => Math.min(least, score), Infinity);
  }

  /** Normalize a text. */
  normalize(text: string): string {
    for (let round = 0; round < this.vocabulary.rounds; round += 1) {
      text = this.composed(text);
      for (const [pattern, replacement] of this.rules) text = text.replace(pattern, () => replacement);
    }
    return this.composed(text);
  }

  encode(text: string): number[] {
    const normal = this.normalize(text);
    const parts = this.addedPattern === null ? [normal] : chunksOf(normal, this.addedPattern);
    const ids = parts.flatMap((part) => {
      const added = this.added.get(part);
      return added === undefined ? this.encodePart(part) : [added];
    });
    return ids.map((id) => (this.special.has(id) ? (this.vocabulary.unknown ?? id) : id));
  }

  /** Encode a text as a model reads it: after the token that starts a document. */
  encodePrompt(text: string): number[] {
    const { start } = this.vocabulary;
    return start === null ? this.encode(text) : [start, ...this.encode(text)];
  }

  decode(tokens: readonly number[]): string {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return tokens.map((token) => decoder.decode(this.bytesOf(token), { stream: true })).join("") + decoder.decode();
  }

  /** The text of a token in its context; empty for a special token. */
  bytesOf(token: number): Uint8Array {
    return this.special.has(token) ? new Uint8Array() : (this.bytes[token] ?? new Uint8Array());
  }

  /** The display form of a single token: its characters, or its bytes in hex if it is part of a character. */
  pieceOf(token: number): { text: string; part: boolean } {
    const bytes = this.bytes[token] ?? new Uint8Array();
    try {
      return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), part: false };
    } catch {
      return { text: [...bytes].map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" "), part: true };
    }
  }

  private composed(text: string): string {
    return this.vocabulary.nfc ? text.normalize("NFC") : text;
  }

  private encodePart(part: string): number[] {
    const chunks = this.split === null ? [part].filter((chunk) => chunk !== "") : chunksOf(part, this.split);
    return chunks.flatMap((chunk) => this.encodeChunk(chunk));
  }

  private encodeChunk(chunk: string): number[] {
    if (this.vocabulary.kind === "bpe") return this.merged(chunk);
    if (this.vocabulary.kind === "words") return [this.ids.get(chunk) ?? this.vocabulary.unknown ?? 0];
    return this.bestCut(chunk).flatMap((piece) => this.idsOf(piece));
  }

  /** The segmentation of a chunk with the best sum of scores (Viterbi); a run of unknown characters is one token. */
  private bestCut(chunk: string): string[] {
    const { scores, unknown } = this.vocabulary;
    const best = new Float64Array(chunk.length + 1);
    const from = new Int32Array(chunk.length + 1).fill(-1);
    const known = new Uint8Array(chunk.length + 1);
    const offer = (start: number, end: number, score: number, isKnown: boolean) => {
      const reached = best[start]! + score;
      if (from[end] !== -1 && reached <= best[end]!) return;
      best[end] = reached;
      from[end] = start;
      known[end] = isKnown ? 1 : 0;
    };
    for (let start = 0; start < chunk.length; ) {
      const width = chunk.codePointAt(start)! > 0xffff ? 2 : 1;
      let single = false;
      for (let end = start + width; end <= Math.min(chunk.length, start + this.longest); end += 1) {
        const id = this.ids.get(chunk.slice(start, end));
        if (id === undefined) continue;
        offer(start, end, scores[id]!, id !== unknown);
        single ||= end === start + width;
      }
      if (!single) offer(start, start + width, this.worst - UNKNOWN_PENALTY, false);
      start += width;
    }
    const cut: string[] = [];
    let run = "";
    for (let end = chunk.length; end > 0; end = from[end]!) {
      const piece = chunk.slice(from[end]!, end);
      if (known[end] === 0) run = piece + run;
      else {
        if (run !== "") cut.push(run);
        run = "";
        cut.push(piece);
      }
    }
    if (run !== "") cut.push(run);
    return cut.reverse();
  }

  /** The id of a vocabulary entry, or its replacement: the ids of its bytes, or the unknown token. */
  private idsOf(piece: string): number[] {
    const id = this.ids.get(piece);
    if (id !== undefined) return [id];
    if (this.vocabulary.spelling === "byte-fallback") {
      const bytes = [...encoder.encode(piece)].map((byte) => this.ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`));
      if (bytes.every((byte) => byte !== undefined)) return bytes;
    }
    return this.vocabulary.unknown === null ? [] : [this.vocabulary.unknown];
  }

  /** Byte-level BPE: pairs are merged in the order in which they were learned, leftmost first. */
  private merged(chunk: string): number[] {
    const symbols = [...encoder.encode(chunk)].map((byte) => ALPHABET[byte]!);
    for (;;) {
      let lowest = Infinity;
      let place = -1;
      for (let i = 0; i + 1 < symbols.length; i += 1) {
        const rank = this.ranks.get(`${symbols[i]!} ${symbols[i + 1]!}`) ?? Infinity;
        if (rank < lowest) [lowest, place] = [rank, i];
      }
      if (place === -1) return symbols.flatMap((symbol) => this.idsOf(symbol));
      symbols.splice(place, 2, symbols[place]! + symbols[place + 1]!);
    }
  }
}

/** Matches and the text between them. */
function chunksOf(text: string, pattern: RegExp): string[] {
  const chunks: string[] = [];
  let reached = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > reached) chunks.push(text.slice(reached, match.index));
    chunks.push(match[0]);
    reached = match.index + match[0].length;
  }
  if (reached < text.length) chunks.push(text.slice(reached));
  return chunks.filter((chunk) => chunk !== "");
}

/** The visible character of each byte in byte-level BPE: the byte itself if printable, otherwise a character from U+0100. */
const ALPHABET: readonly string[] = (() => {
  const printable = (byte: number) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : 0x100 + others++));
})();
const BYTES = new Map(ALPHABET.map((character, byte) => [character, byte]));

function spelledBytes(piece: string, spelling: Vocabulary["spelling"]): Uint8Array {
  const byte = spelling === "byte-fallback" ? /^<0x([0-9A-Fa-f]{2})>$/.exec(piece) : null;
  if (byte !== null) return Uint8Array.of(parseInt(byte[1]!, 16));
  const signs = [...piece];
  if (spelling === "byte-level" && signs.every((sign) => BYTES.has(sign))) return Uint8Array.from(signs, (sign) => BYTES.get(sign)!);
  return encoder.encode(piece);
}
