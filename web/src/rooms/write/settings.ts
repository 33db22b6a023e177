/** The sampling settings in the address: five numbers, empty if disabled. */
import type { Sampling } from "@/math/sampling";

/** The defaults of `kotha generate`. */
export const USUAL: Sampling = { temperature: 0.8, top_k: 40, top_p: null, min_p: null, repetition_penalty: 1.1 };
export const USUAL_SEED = 7;
export const USUAL_TOKENS = 40;
export const MOST_TOKENS = 400;

const NAMES = ["temperature", "top_k", "top_p", "min_p", "repetition_penalty"] as const;
const BOUNDS: Record<(typeof NAMES)[number], [number, number]> = {
  temperature: [0, 2],
  top_k: [1, 1_000_000],
  top_p: [0.0001, 1],
  min_p: [0.0001, 1],
  repetition_penalty: [0.1, 10],
};

/** `short` omits default values. */
export function formatSettings(settings: Sampling, short = true): string {
  return short && same(settings, USUAL) ? "" : NAMES.map((name) => settings[name] ?? "").join(",");
}

/** Parse them from an address; an invalid setting is disabled, and an invalid temperature is replaced by the default. */
export function parseSettings(text: string | undefined): Sampling {
  if (text === undefined || text === "") return { ...USUAL };
  const parts = text.split(",");
  const read = NAMES.map((name, place) => {
    const [least, most] = BOUNDS[name];
    const value = parts[place] ? Number(parts[place]) : NaN;
    return value >= least && value <= most ? value : null;
  });
  const [temperature = null, top_k = null, top_p = null, min_p = null, repetition_penalty = null] = read;
  return { temperature: temperature ?? USUAL.temperature, top_k: top_k === null ? null : Math.round(top_k), top_p, min_p, repetition_penalty };
}

export function same(one: Sampling, other: Sampling): boolean {
  return NAMES.every((name) => one[name] === other[name]);
}
