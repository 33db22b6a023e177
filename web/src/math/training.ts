/** Training a mini, one step after the other, with a way back: every step that was taken is kept. */
import { begin, predict, learn, type MiniConfig, type Numbers } from "./mini";

export type Method = "adam" | "plain";

export interface Moment {
  step: number;
  weights: Numbers;
  /** Running means of the gradient and of its square, which Adam divides by one another. */
  mean: Numbers;
  square: Numbers;
}
export interface Seen {
  step: number;
  loss: number;
  weights: Numbers;
  gradient: Numbers;
  /** What the next step would add to each weight. */
  update: Numbers;
  losses: number[];
  /** For each text, at each place: the likeliest token, its probability, and that of the true one. */
  guesses: { token: number; probability: number; truth: number }[][];
  /** What it writes by itself, token by token, beginning with the mark. */
  written: number[];
}

const BETA_1 = 0.9;
const BETA_2 = 0.99;
const TINY = 1e-8;
const MOST_KEPT = 3000;

export class Training {
  readonly #kept: Moment[] = [];
  readonly #losses: number[] = [];
  #now: Moment;

  constructor(
    readonly config: MiniConfig,
    readonly texts: readonly (readonly number[])[],
    seed: number,
    public rate: number,
    public method: Method,
  ) {
    const weights = begin(config, seed);
    this.#now = { step: 0, weights, mean: new Float64Array(weights.length), square: new Float64Array(weights.length) };
  }

  /** One step down the gradient. */
  step(): void {
    const { loss, gradient } = learn(this.config, this.#now.weights, this.texts);
    if (this.#kept.length >= MOST_KEPT) this.#kept.shift();
    this.#kept.push(this.#now);
    this.#losses[this.#now.step] = loss;
    const { update, mean, square } = this.#update(gradient);
    const weights = this.#now.weights.map((each, i) => each + update[i]!);
    this.#now = { step: this.#now.step + 1, weights, mean, square };
  }

  /** One step back; false at the beginning. */
  back(): boolean {
    const before = this.#kept.pop();
    if (before === undefined) return false;
    this.#now = before;
    this.#losses.length = before.step;
    return true;
  }

  /** How things stand now. */
  look(): Seen {
    const { weights, step } = this.#now;
    const { loss, gradient, foretold } = learn(this.config, weights, this.texts);
    const V = this.config.vocabulary;
    const guesses = this.texts.map((text, n) =>
      text.slice(1).map((truth, t) => {
        const shares = [...foretold[n]!.subarray(t * V, (t + 1) * V)];
        const probability = Math.max(...shares);
        return { token: shares.indexOf(probability), probability, truth: shares[truth] ?? 0 };
      }),
    );
    return { step, loss, weights, gradient, update: this.#update(gradient).update, losses: [...this.#losses.slice(0, step), loss], guesses, written: this.#write() };
  }

  /** What a gradient makes of the weights: against it, by the rate; Adam lets each weight go at a pace of its own. */
  #update(gradient: Numbers): { update: Numbers; mean: Numbers; square: Numbers } {
    const { step, mean: m, square: s } = this.#now;
    if (this.method === "plain") return { update: gradient.map((each) => -this.rate * each), mean: m, square: s };
    const mean = m.map((each, i) => BETA_1 * each + (1 - BETA_1) * gradient[i]!);
    const square = s.map((each, i) => BETA_2 * each + (1 - BETA_2) * gradient[i]! ** 2);
    const [warm1, warm2] = [1 - BETA_1 ** (step + 1), 1 - BETA_2 ** (step + 1)];
    const update = mean.map((each, i) => (-this.rate * (each / warm1)) / (Math.sqrt(square[i]! / warm2) + TINY));
    return { update, mean, square };
  }

  /** The likeliest token each time, until the mark comes again or the context is full. */
  #write(): number[] {
    const written = [0];
    while (written.length < this.config.context) {
      const shares = predict(this.config, this.#now.weights, written).slice(-this.config.vocabulary);
      const best = shares.indexOf(Math.max(...shares));
      if (best === 0) break;
      written.push(best);
    }
    return written.slice(1);
  }
}
