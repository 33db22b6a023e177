/**
 * The distribution from which the next token is sampled, with the settings in the order of `generation/plain.py`:
 * repetition penalty, temperature, top-k, top-p of the rest, min-p. The tests of both languages use the same cases.
 */

export interface Sampling {
  temperature: number;
  /** null: off. */
  top_k: number | null;
  top_p: number | null;
  min_p: number | null;
  repetition_penalty: number | null;
}

/** The first setting that excludes a token from sampling. */
export type Cut = "greedy" | "top_k" | "top_p" | "min_p" | "tiny";

export interface Spread {
  /** Tokens, best first; if some are excluded, at least all that can be sampled. */
  order: Uint32Array;
  /** The number of tokens that can be sampled. */
  kept: number;
  /** The sampling probability of each of `order`; 0 if it cannot be sampled. */
  chances: Float64Array;
  /** The model's own probability of all tokens that can be sampled. */
  share: number;
  cutBy: (place: number) => Cut | null;
}

/** Number of tokens that are ranked first to find the limit of top-p. */
const FEW = 256;

/** The sampling distribution, and at least the best `shown` tokens, each with the reason if it is excluded. */
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

/** The model's probability of each token, before any setting is applied. */
export function untouched(logits: Float32Array): (token: number) => number {
  const best = greatest(logits);
  const total = sum(logits, (score) => Math.exp(score - best));
  return (token) => Math.exp((logits[token] ?? -Infinity) - best) / total;
}

/** The best tokens; ties go to the first, as in the engine. */
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

/** The number of best tokens whose total probability, among the tokens that top-k kept, reaches `top_p`. */
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

/** The properties of a generated token that are needed to check it against settings. */
export interface SampledToken {
  probability: number;
  rank: number;
  above: number;
  best: number;
}

/**
 * Whether these settings would have excluded a token, ignoring repetition: exact for top-k and min-p; for top-p only if
 * the known probabilities are those to which it is applied, at temperature 1 and without top-k.
 */
export function isFilteredOut(token: SampledToken, settings: Sampling): Cut | null {
  if (settings.temperature === 0) return token.rank > 1 ? "greedy" : null;
  if (settings.top_k !== null && token.rank > settings.top_k) return "top_k";
  const plain = settings.temperature === 1 && settings.top_k === null;
  if (settings.top_p !== null && plain && token.above >= settings.top_p) return "top_p";
  if (settings.min_p !== null && (token.probability / token.best) ** (1 / settings.temperature) < settings.min_p) return "min_p";
  return null;
}

/** The tint of a token, 0 to 5: the less likely, the darker. */
export const TINTS = [0.5, 0.2, 0.05, 0.01, 0.001] as const;

export function tint(probability: number): number {
  const found = TINTS.findIndex((least) => probability >= least);
  return found === -1 ? TINTS.length : found;
}
