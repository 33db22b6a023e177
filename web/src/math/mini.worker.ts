/** Trains a mini model in a separate thread, so that the page stays responsive. */
import { Training, type Method, type Seen } from "./training";
import type { MiniConfig } from "./mini";

export type Order =
  | { kind: "begin"; config: MiniConfig; texts: number[][]; seed: number; rate: number; method: Method }
  | { kind: "learn"; steps: number }
  | { kind: "back" }
  | { kind: "how"; rate: number; method: Method };

let training: Training | null = null;

onmessage = ({ data }: MessageEvent<Order>) => {
  if (data.kind === "begin") training = new Training(data.config, data.texts, data.seed, data.rate, data.method);
  if (training === null) return;
  if (data.kind === "learn") for (let step = 0; step < data.steps; step += 1) training.step();
  if (data.kind === "back") training.back();
  if (data.kind === "how") Object.assign(training, { rate: data.rate, method: data.method });
  postMessage(training.look() satisfies Seen);
};
