/**
 * What the next token is drawn from: the twin of `generation/plain.py`, in its order. Repetition, temperature, top-k, top-p
 * of what is left, min-p. Both languages' tests read the same cases.
 */

export interface Sampling {
  temperature: number;
  /** null: off. */
  top_k: number | null;
  top_p: number | null;
  min_p: number | null;
  repetition_penalty: number | null;
}

/** What keeps a token from being drawn; the first that does. */
export type Cut = "greedy" | "top_k" | "top_p" | "min_p" | "tiny";

export interface Spread {
  /** Tokens, the best first; at least all that can be drawn where some cannot. */
  order: Uint32Array;
  /** How many of them can be drawn. */
  kept: number;
  /** The chance of each of `order`; 0 for what cannot be drawn. */
  chances: Float64Array;
  /** The probability that the model itself gave to all that can be drawn. */
  share: number;
  cutBy: (place: number) => Cut | null;
}

/** Places that are ranked first where top-p must be looked for. */
const FEW = 256;

/** What is drawn from, and at least the best `shown` tokens with why they cannot be. */
export function spread(logits: Float32Array, settings: Sampling, seen: Iterable<number>, shown = 16): Spread {
  const scores = penalised(logits, settings.repetition_penalty, seen);
  const size = scores.length;
  const best = greatest(scores);
  const heat = settings.temperature;
  const weightOf = heat === 0 ? (score: number) => (score === best ? 1 : 0) : (score: number) => Math.exp((score - best) / heat);
  const inTopK = Math.min(settings.top_k ?? size, size);
  const likelyEnough = heat === 0 ? 1 : count(scores, (score) => weightOf(score) >= (settings.min_p ?? 0) && weightOf(score) > 0);
  const inTopP = heat === 0 || settings.top_p === null ? size : nucleus(scores, weightOf, settings.top_p, inTopK);
  const kept = heat === 0 ? 1 : Math.min(inTopK, inTopP, likelyEnough);
  const order = ranked(scores, Math.max(kept === size ? 0 : kept, Math.min(shown, size)));
  const total = kept === size ? sum(scores, weightOf) : sum(order.subarray(0, kept), (token) => weightOf(scores[token] ?? 0));
  const chances = Float64Array.from(order, (token, place) => (place < kept ? weightOf(scores[token] ?? 0) / total : 0));
  const own = untouched(logits);
  return {
    order,
    kept,
    chances,
    share: kept === size ? 1 : sum(order.subarray(0, kept), own),
    cutBy: (place) => {
      if (place < kept) return null;
      if (heat === 0) return "greedy";
      if (place >= inTopK) return "top_k";
      if (place >= inTopP) return "top_p";
      return settings.min_p !== null ? "min_p" : "tiny";
    },
  };
}

/** The probability of each token as the model gives it, before any setting acts. */
export function untouched(logits: Float32Array): (token: number) => number {
  const best = greatest(logits);
  const total = sum(logits, (score) => Math.exp(score - best));
  return (token) => Math.exp((logits[token] ?? -Infinity) - best) / total;
}

/** The best tokens, the first where several are equal, as the engine ranks them. */
export function ranked(scores: ArrayLike<number>, wanted: number): Uint32Array {
  const better = (a: number, b: number) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b;
  if (wanted >= scores.length) return Uint32Array.from({ length: scores.length }, (_, token) => token).sort(better);
  if (wanted <= 0) return new Uint32Array();
  const last = Float64Array.from(scores).sort()[scores.length - wanted] ?? 0;
  const above: number[] = [];
  const even: number[] = [];
  for (let token = 0; token < scores.length; token += 1) {
    const score = scores[token] ?? 0;
    if (score > last) above.push(token);
    else if (score === last) even.push(token);
  }
  return Uint32Array.from([...above, ...even.slice(0, wanted - above.length)]).sort(better);
}

function penalised(logits: Float32Array, penalty: number | null, seen: Iterable<number>): Float64Array {
  const scores = Float64Array.from(logits);
  if (penalty === null) return scores;
  for (const token of new Set(seen)) {
    const score = scores[token];
    if (score !== undefined) scores[token] = score > 0 ? score / penalty : score * penalty;
  }
  return scores;
}

/** How many of the best together have the share `top_p` of all that top-k left. */
function nucleus(scores: Float64Array, weightOf: (score: number) => number, share: number, inTopK: number): number {
  let order = ranked(scores, Math.min(inTopK, FEW));
  const all = inTopK === scores.length ? sum(scores, weightOf) : sum(ranked(scores, inTopK), (token) => weightOf(scores[token] ?? 0));
  let reached = 0;
  for (let place = 0; place < inTopK; place += 1) {
    if (place === order.length) order = ranked(scores, Math.min(inTopK, 4 * place));
    if (reached >= share * all) return place;
    reached += weightOf(scores[order[place] ?? 0] ?? 0);
  }
  return inTopK;
}

function greatest(scores: ArrayLike<number>): number {
  let best = -Infinity;
  for (let i = 0; i < scores.length; i += 1) best = Math.max(best, scores[i] ?? -Infinity);
  return best;
}

function sum(values: ArrayLike<number>, of: (value: number) => number): number {
  let total = 0;
  for (let i = 0; i < values.length; i += 1) total += of(values[i] ?? 0);
  return total;
}

function count(values: ArrayLike<number>, holds: (value: number) => boolean): number {
  let found = 0;
  for (let i = 0; i < values.length; i += 1) if (holds(values[i] ?? 0)) found += 1;
  return found;
}

/** A token that was written, as far as settings can be held against it. */
export interface SampledToken {
  probability: number;
  rank: number;
  above: number;
  best: number;
}

/**
 * Whether these settings would have cut a token, repetition aside: exact for top-k and min-p; for top-p only where the
 * probabilities that are known are those that it cuts, at temperature 1 and without top-k.
 */
export function isFilteredOut(token: SampledToken, settings: Sampling): Cut | null {
  if (settings.temperature === 0) return token.rank > 1 ? "greedy" : null;
  if (settings.top_k !== null && token.rank > settings.top_k) return "top_k";
  const plain = settings.temperature === 1 && settings.top_k === null;
  if (settings.top_p !== null && plain && token.above >= settings.top_p) return "top_p";
  if (settings.min_p !== null && (token.probability / token.best) ** (1 / settings.temperature) < settings.min_p) return "min_p";
  return null;
}

/** How deep a token is tinted, 0 to 5: the less likely it was, the deeper. */
export const TINTS = [0.5, 0.2, 0.05, 0.01, 0.001] as const;

export function tint(probability: number): number {
  const found = TINTS.findIndex((least) => probability >= least);
  return found === -1 ? TINTS.length : found;
}
