/** Format a probability: more decimals for small ones, and "less than" for those that would round to zero. */
import { percent } from "@/words/index.svelte";

/** Format the share of the remaining tokens: if some are excluded, it is never rounded up to 100 %. */
export function shareLeft(part: number, all: boolean): string {
  if (all || part < 0.99) return percent(part, 0);
  return part > 0.9999 ? `> ${percent(0.9999, 2)}` : percent(part, 2);
}

const LEAST = 0.00001;

export function share(value: number): string {
  if (value > 0 && value < LEAST) return `< ${percent(LEAST, 3)}`;
  return percent(value, value >= 0.0995 ? 1 : value >= 0.00995 ? 2 : 3);
}
