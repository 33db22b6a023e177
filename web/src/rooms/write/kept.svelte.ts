/** State that is kept while another room is open: both texts with their branches, and their settings. */
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

  /** Apply the parameters of the address; others are unchanged. */
  read(): void {
    const { s, bs, seed, n } = route.query;
    this.settings = [s ? parseSettings(s) : this.settings[0], bs ? parseSettings(bs) : this.settings[1]];
    this.seed = wholeNumber(seed, 0, MOST_SEED) ?? this.seed;
    this.count = wholeNumber(n, 1, MOST_TOKENS) ?? this.count;
  }
}

export const kept = new Kept();
