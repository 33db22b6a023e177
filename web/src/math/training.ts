/** Trains a mini model step by step; all steps are kept, so that each can be undone. */
import { begin, predict, learn, type MiniConfig, type Numbers } from "./mini";

export type Method = "adam" | "plain";

export interface Moment {
  step: number;
  weights: Numbers;
  /** Moving averages of the gradient and of its square, from which Adam computes the update. */
  mean: Numbers;
  square: Numbers;
}
export interface Seen {
  step: number;
  loss: number;
  weights: Numbers;
  gradient: Numbers;
  /** The update that the next step would add to each weight. */
  update: Numbers;
  losses: number[];
  /** For each text and position: the most likely token, its probability, and that of the correct token. */
  guesses: { token: number; probability: number; truth: number }[][];
  /** Text that the model generates, token by token, after the boundary token. */
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

  /** Do one step of gradient descent. */
  step(): void {
    const { loss, gradient } = learn(this.config, this.#now.weights, this.texts);
    if (this.#kept.length >= MOST_KEPT) this.#kept.shift();
    this.#kept.push(this.#now);
    this.#losses[this.#now.step] = loss;
    const { update, mean, square } = this.#update(gradient);
    const weights = this.#now.weights.map((each, i) => each + update[i]!);
    this.#now = { step: this.#now.step + 1, weights, mean, square };
  }

  /** Undo one step; false at the start. */
  back(): boolean {
    const before = this.#kept.pop();
    if (before === undefined) return false;
    this.#now = before;
    this.#losses.length = before.step;
    return true;
  }

  /** The current state. */
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

  /** The update of the weights from a gradient: the negative gradient times the rate; Adam scales it for each weight. */
  #update(gradient: Numbers): { update: Numbers; mean: Numbers; square: Numbers } {
    const { step, mean: m, square: s } = this.#now;
    if (this.method === "plain") return { update: gradient.map((each) => -this.rate * each), mean: m, square: s };
    const mean = m.map((each, i) => BETA_1 * each + (1 - BETA_1) * gradient[i]!);
    const square = s.map((each, i) => BETA_2 * each + (1 - BETA_2) * gradient[i]! ** 2);
    const [warm1, warm2] = [1 - BETA_1 ** (step + 1), 1 - BETA_2 ** (step + 1)];
    const update = mean.map((each, i) => (-this.rate * (each / warm1)) / (Math.sqrt(square[i]! / warm2) + TINY));
    return { update, mean, square };
  }

  /** Greedy decoding until the boundary token or a full context. */
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
