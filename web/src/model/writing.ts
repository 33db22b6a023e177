/** Text generation with a model: the counterpart of `generation/plain.py`, with a cache. The same seed gives the same text. */
import { ranked, spread, untouched, type Sampling } from "@/math/sampling";
import type { Gpt } from "./gpt";

export interface Drawing {
  token: number;
  /** The model's probability, before any setting is applied. */
  probability: number;
  rank: number;
  /** Total probability of the more likely tokens. */
  above: number;
  /** The most likely tokens at this position, best first. */
  others: { token: number; probability: number }[];
}

/** The index of the first token in the context; when the context is full, its older half is dropped. */
export function contextStart(count: number, prompt: number, context: number): number {
  const first = Math.max(0, prompt - context);
  const half = Math.max(1, Math.floor(context / 2));
  return first + Math.ceil(Math.max(0, count - first - context) / half) * half;
}

/** The text in a model's context: its tokens, and the number of those processed. */
export class Text {
  private first = 0;
  private read: number[] = [];

  constructor(private readonly model: Gpt) {}

  /** Return the logits after these tokens; a prefix shared with the previous tokens is not processed again. */
  logitsAfter(tokens: readonly number[], prompt: number): Float32Array {
    const first = contextStart(tokens.length, prompt, this.model.shape.context_length);
    const seen = tokens.slice(first);
    let known = 0;
    if (first === this.first) while (known < Math.min(this.read.length, seen.length - 1) && this.read[known] === seen[known]) known += 1;
    for (let place = known; place < seen.length; place += 1) this.model.step(seen[place]!, place, place === seen.length - 1);
    this.first = first;
    this.read = seen;
    return this.model.logits;
  }

  /** The attention weights of the last token over the visible tokens, and the position of the first of these. */
  attention(): { first: number; layers: Float32Array[][] } {
    return { first: this.first, layers: this.model.attention(this.read.length) };
  }
}

/** Select the token at a number in [0, 1) of the cumulative distribution, best first. */
export function sampleToken(logits: Float32Array, settings: Sampling, seen: Iterable<number>, number: number): number {
  const few = spread(logits, settings, seen, 1);
  // all tokens can be sampled, so all must be ranked
  const { order, chances, kept } = few.kept === logits.length ? spread(logits, settings, seen, logits.length) : few;
  let reached = 0;
  for (let place = 0; place < kept; place += 1) {
    reached += chances[place]!;
    if (number < reached) return order[place]!;
  }
  return order[kept - 1]!;
}

/** The model's probability of a token, and the best alternatives. */
export function tokenReport(logits: Float32Array, token: number, shown = 8): Drawing {
  const own = untouched(logits);
  let rank = 1;
  let above = 0;
  for (let other = 0; other < logits.length; other += 1) {
    if (logits[other]! <= logits[token]!) continue;
    rank += 1;
    above += own(other);
  }
  const others = [...ranked(logits, shown)].map((each) => ({ token: each, probability: own(each) }));
  return { token, probability: own(token), rank, above, others };
}

/** Random numbers in [0, 1) from a seed, identical to the library's: torch's Mersenne Twister, 24 bits each. */
export class Numbers {
  private readonly state = new Uint32Array(624);
  private at = 624;

  constructor(seed: number) {
    this.state[0] = seed;
    for (let i = 1; i < 624; i += 1) {
      const before = this.state[i - 1]!;
      this.state[i] = Math.imul(1812433253, before ^ (before >>> 30)) + i;
    }
  }

  next(): number {
    if (this.at === 624) this.turn();
    let y = this.state[this.at++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    y ^= y >>> 18;
    return (y & 0xffffff) / 0x1000000;
  }

  private turn(): void {
    const state = this.state;
    for (let i = 0; i < 624; i += 1) {
      const y = (state[i]! & 0x80000000) | (state[(i + 1) % 624]! & 0x7fffffff);
      state[i] = state[(i + 397) % 624]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.at = 0;
  }
}
