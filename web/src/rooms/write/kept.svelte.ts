/** What stays while one is in another room: both texts with their branches, and how they are drawn. */
import type { Sampling } from "@/math/sampling";
import { route } from "@/state/route.svelte";
import { wholeNumber } from "@/words/numbers";
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
    const { s, bs, seed, n } = route.query;
    this.settings = [s ? parseSettings(s) : this.settings[0], bs ? parseSettings(bs) : this.settings[1]];
    this.seed = wholeNumber(seed, 0, MOST_SEED) ?? this.seed;
    this.count = wholeNumber(n, 1, MOST_TOKENS) ?? this.count;
  }
}

export const kept = new Kept();
