/** The mini model: its text, its settings, and the results of the thread that trains it. Stored in this browser. */
import { lettered, type Lettered } from "@/math/lettered";
import { layout, type MiniConfig, type ArrayLayout } from "@/math/mini";
import type { Order } from "@/math/mini.worker";
import type { Method, Seen } from "@/math/training";
import { recallParts, remember } from "@/state/remembered";

const KEPT = "kotha.hand.mini";
const MOST_AGAIN = 1000;
/** Milliseconds between two updates during playback. */
const BEAT = 90;

interface Kept {
  text: string;
  seed: number;
  rate: number;
  method: Method;
  step: number;
}
export const RATES: Record<Method, number> = { adam: 0.03, plain: 0.5 };

export class Mini {
  text = $state("");
  seed = $state(1);
  method: Method = $state("adam");
  rate = $state(RATES.adam);
  playing = $state(false);
  /** Steps between two updates. */
  speed = $state(1);
  seen: Seen | null = $state.raw(null);
  read: Lettered = $state.raw({ letters: [], texts: [], cut: false });
  config: MiniConfig = $state.raw({ vocabulary: 1, context: 1, width: 8, heads: 2, inner: 16 });
  places: ArrayLayout[] = $state.raw([]);
  readonly #worker = new Worker(new URL("../../math/mini.worker.ts", import.meta.url), { type: "module" });
  #busy = false;
  #last = 0;

  constructor(example: string) {
    const kept = recallParts<Kept>(KEPT);
    this.text = kept.text ?? example;
    this.seed = kept.seed ?? 1;
    this.method = kept.method ?? "adam";
    this.rate = kept.rate ?? RATES[this.method];
    this.#worker.onmessage = ({ data }: MessageEvent<Seen>) => this.#heard(data);
    this.begin(kept.step ?? 0);
  }

  /** Start again with the current text; a number of steps is done at once to restore an earlier state. */
  begin(steps = 0): void {
    this.playing = false;
    this.read = lettered(this.text);
    if (this.read.texts.length === 0) {
      this.seen = null;
      return;
    }
    const context = Math.max(...this.read.texts.map((text) => text.length - 1));
    this.config = { vocabulary: this.read.letters.length, context, width: 8, heads: 2, inner: 16 };
    this.places = layout(this.config);
    this.#send({ kind: "begin", config: this.config, texts: this.read.texts, seed: this.seed, rate: this.rate, method: this.method });
    if (steps > 0) this.#send({ kind: "learn", steps: Math.min(steps, MOST_AGAIN) });
  }

  step(): void {
    this.#send({ kind: "learn", steps: 1 });
  }
  back(): void {
    this.playing = false;
    this.#send({ kind: "back" });
  }
  play(): void {
    this.playing = !this.playing;
    if (this.playing) this.#send({ kind: "learn", steps: this.speed });
  }
  how(rate: number, method: Method): void {
    this.rate = rate;
    this.method = method;
    this.#send({ kind: "how", rate, method });
  }
  end(): void {
    this.#worker.terminate();
  }

  #send(order: Order): void {
    if (order.kind === "learn" && this.#busy && this.playing) return;
    this.#busy = true;
    this.#worker.postMessage(order);
  }

  #heard(seen: Seen): void {
    this.#busy = false;
    this.seen = seen;
    this.#keep();
    if (!this.playing) return;
    const wait = Math.max(0, BEAT - (performance.now() - this.#last));
    setTimeout(() => {
      this.#last = performance.now();
      if (this.playing) this.#send({ kind: "learn", steps: this.speed });
    }, wait);
  }

  #keep(): void {
    const kept: Kept = { text: this.text, seed: this.seed, rate: this.rate, method: this.method, step: this.seen?.step ?? 0 };
    remember(KEPT, JSON.stringify(kept));
  }
}
