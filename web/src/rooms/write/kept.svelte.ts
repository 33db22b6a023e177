/** What stays while one is in another room: both texts with their branches, and how they are drawn. */
import type { Sampling } from "@/math/sampling";
import { place } from "@/state/place.svelte";
import { latinDigits } from "@/words/numbers";
import { Column } from "./column.svelte";
import { MOST_TOKENS, parseSettings, USUAL_SEED, USUAL_TOKENS } from "./settings";

export const MOST_SEED = 2 ** 31 - 1;

class Kept {
  columns = [new Column(), new Column()] as const;
  settings: [Sampling, Sampling] = $state.raw([parseSettings(undefined), parseSettings(undefined)]);
  seed = $state(USUAL_SEED);
  count = $state(USUAL_TOKENS);

  /** Take what the address says; what it does not say stays. */
  read(): void {
    const { s, bs, seed, n } = place.query;
    this.settings = [s ? parseSettings(s) : this.settings[0], bs ? parseSettings(bs) : this.settings[1]];
    this.seed = whole(seed, 0, MOST_SEED) ?? this.seed;
    this.count = whole(n, 1, MOST_TOKENS) ?? this.count;
  }
}

/** A whole number that was typed, in either kind of digits; null where it is none, or out of bounds. */
export function whole(given: string | undefined, least: number, most: number): number | null {
  const value = Number(latinDigits(given ?? "").replaceAll(",", "") || NaN);
  return Number.isInteger(value) && value >= least && value <= most ? value : null;
}

export const kept = new Kept();
