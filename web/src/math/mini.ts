/** A very small GPT in which every weight is a visible cell: the library's `mini` (one block, post-norm, ReLU) with learned
 * positions; forward and backward passes are written by hand in double precision. Names and shapes are those of torch; a
 * test compares loss and gradients with torch. Matrices are stored row by row in one array. */

export interface MiniConfig {
  vocabulary: number;
  context: number;
  width: number;
  heads: number;
  inner: number;
}
export interface ArrayLayout {
  name: string;
  rows: number;
  columns: number;
  /** Offset in the array of all weights. */
  start: number;
}
/** A double-precision array with its own memory, which can be transferred to another thread. */
export type Numbers = Float64Array<ArrayBuffer>;

const EPSILON = 1e-5;
const BLOCK = "stack.blocks.0";

/** Every matrix of the model, in torch's order. */
export function layout(config: MiniConfig): ArrayLayout[] {
  const { vocabulary: V, context: T, width: C, inner: F } = config;
  const shapes: [string, number, number][] = [
    ["tokens.weight", V, C],
    ["positions.table.weight", T, C],
    ...["query", "key", "value", "output"].map((name): [string, number, number] => [`${BLOCK}.attention.${name}.weight`, C, C]),
    [`${BLOCK}.attention_norm.weight`, 1, C],
    [`${BLOCK}.attention_norm.bias`, 1, C],
    [`${BLOCK}.feedforward.up.weight`, F, C],
    [`${BLOCK}.feedforward.up.bias`, 1, F],
    [`${BLOCK}.feedforward.down.weight`, C, F],
    [`${BLOCK}.feedforward.down.bias`, 1, C],
    [`${BLOCK}.feedforward_norm.weight`, 1, C],
    [`${BLOCK}.feedforward_norm.bias`, 1, C],
    ["head.weight", V, C],
    ["head.bias", 1, V],
  ];
  let start = 0;
  return shapes.map(([name, rows, columns]) => {
    const place = { name, rows, columns, start };
    start += rows * columns;
    return place;
  });
}

export const sizeOf = (places: readonly ArrayLayout[]): number => places.reduce((sum, { rows, columns }) => sum + rows * columns, 0);

/** Initial weights drawn from a seed: small matrices, gains of 1, biases of 0. */
export function begin(config: MiniConfig, seed: number): Numbers {
  const places = layout(config);
  const weights = new Float64Array(sizeOf(places));
  const draw = normal(seed);
  for (const { name, rows, columns, start } of places) {
    const bias = name.endsWith(".bias");
    const gain = name.endsWith("norm.weight");
    for (let i = 0; i < rows * columns; i += 1) weights[start + i] = gain ? 1 : bias ? 0 : draw() / Math.sqrt(config.width);
  }
  return weights;
}

/** Normally distributed numbers, the same for the same seed (mulberry32, Box-Muller). */
function normal(seed: number): () => number {
  let state = seed >>> 0;
  const even = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(1 - even())) * Math.cos(2 * Math.PI * even());
}

// -- operations, each with its backward pass ---------------------------------------------------------------------------

/** x (T, I) times the transpose of w (O, I), plus b: (T, O). */
function linear(x: Numbers, w: Numbers, b: Numbers | null, inputs: number): Numbers {
  const outputs = w.length / inputs;
  const rows = x.length / inputs;
  const y = new Float64Array(rows * outputs);
  for (let t = 0; t < rows; t += 1)
    for (let o = 0; o < outputs; o += 1) {
      let sum = b === null ? 0 : b[o]!;
      for (let i = 0; i < inputs; i += 1) sum += x[t * inputs + i]! * w[o * inputs + i]!;
      y[t * outputs + o] = sum;
    }
  return y;
}

/** The backward pass: add to the gradients of w and b, and return that of x. */
function linearBack(dy: Numbers, x: Numbers, w: Numbers, dw: Numbers, db: Numbers | null, inputs: number): Numbers {
  const outputs = w.length / inputs;
  const rows = x.length / inputs;
  const dx = new Float64Array(x.length);
  for (let t = 0; t < rows; t += 1)
    for (let o = 0; o < outputs; o += 1) {
      const d = dy[t * outputs + o]!;
      if (db !== null) db[o]! += d;
      for (let i = 0; i < inputs; i += 1) {
        dw[o * inputs + i]! += d * x[t * inputs + i]!;
        dx[t * inputs + i]! += d * w[o * inputs + i]!;
      }
    }
  return dx;
}

interface Normed {
  y: Numbers;
  hat: Numbers;
  scale: Numbers;
}

function layerNorm(x: Numbers, gain: Numbers, bias: Numbers): Normed {
  const width = gain.length;
  const rows = x.length / width;
  const [y, hat, scale] = [new Float64Array(x.length), new Float64Array(x.length), new Float64Array(rows)];
  for (let t = 0; t < rows; t += 1) {
    const row = x.subarray(t * width, (t + 1) * width);
    const mean = row.reduce((sum, each) => sum + each, 0) / width;
    const variance = row.reduce((sum, each) => sum + (each - mean) ** 2, 0) / width;
    scale[t] = 1 / Math.sqrt(variance + EPSILON);
    for (let i = 0; i < width; i += 1) {
      hat[t * width + i] = (row[i]! - mean) * scale[t]!;
      y[t * width + i] = hat[t * width + i]! * gain[i]! + bias[i]!;
    }
  }
  return { y, hat, scale };
}

function layerNormBack(dy: Numbers, { hat, scale }: Normed, gain: Numbers, dgain: Numbers, dbias: Numbers): Numbers {
  const width = gain.length;
  const dx = new Float64Array(dy.length);
  for (let t = 0; t < scale.length; t += 1) {
    let [sum, along] = [0, 0];
    for (let i = 0; i < width; i += 1) {
      const at = t * width + i;
      dgain[i]! += dy[at]! * hat[at]!;
      dbias[i]! += dy[at]!;
      sum += dy[at]! * gain[i]!;
      along += dy[at]! * gain[i]! * hat[at]!;
    }
    for (let i = 0; i < width; i += 1) {
      const at = t * width + i;
      dx[at] = scale[t]! * (dy[at]! * gain[i]! - sum / width - (hat[at]! * along) / width);
    }
  }
  return dx;
}

function softmax(scores: Numbers): Numbers {
  const most = Math.max(...scores);
  const powers = scores.map((each) => Math.exp(each - most));
  const sum = powers.reduce((all, each) => all + each, 0);
  return powers.map((each) => each / sum);
}

// -- the model --------------------------------------------------------------------------------------------------------

export interface Learned {
  /** Mean loss in nats over all predicted tokens. */
  loss: number;
  gradient: Numbers;
  /** For each text and position, the probabilities of the next token: (T, V). */
  foretold: Numbers[];
}

/** Loss and gradients of all weights for some texts of token ids; each token is predicted from those before it. */
export function learn(config: MiniConfig, weights: Numbers, texts: readonly (readonly number[])[]): Learned {
  const places = layout(config);
  const gradient = new Float64Array(weights.length);
  const part = (of: Numbers, name: string): Numbers => {
    const place = places.find((each) => each.name === name || each.name === `${BLOCK}.${name}`);
    if (place === undefined) throw new Error(`no weights are called ${name}`);
    return of.subarray(place.start, place.start + place.rows * place.columns);
  };
  const total = texts.reduce((sum, text) => sum + text.length - 1, 0);
  let loss = 0;
  const foretold = texts.map((text) => {
    const kept = forward(config, (name) => part(weights, name), text.slice(0, -1));
    const dlogits = kept.probabilities.map((each) => each / total);
    text.slice(1).forEach((token, t) => {
      loss -= Math.log(kept.probabilities[t * config.vocabulary + token]!) / total;
      dlogits[t * config.vocabulary + token]! -= 1 / total;
    });
    backward(config, (name) => part(weights, name), (name) => part(gradient, name), kept, dlogits);
    return kept.probabilities;
  });
  return { loss, gradient, foretold };
}

/** The probabilities of the token after each token of a text: (T, V). */
export function predict(config: MiniConfig, weights: Numbers, tokens: readonly number[]): Numbers {
  const places = layout(config);
  const part = (name: string): Numbers => {
    const place = places.find((each) => each.name === name || each.name === `${BLOCK}.${name}`)!;
    return weights.subarray(place.start, place.start + place.rows * place.columns);
  };
  return forward(config, part, tokens).probabilities;
}

interface Kept {
  tokens: readonly number[];
  x: Numbers;
  q: Numbers;
  k: Numbers;
  v: Numbers;
  looks: Numbers;
  joined: Numbers;
  first: Normed;
  inner: Numbers;
  second: Normed;
  probabilities: Numbers;
}

function forward(config: MiniConfig, w: (name: string) => Numbers, tokens: readonly number[]): Kept {
  const { width: C, heads: H, vocabulary: V } = config;
  const T = tokens.length;
  const D = C / H;
  const [table, positions] = [w("tokens.weight"), w("positions.table.weight")];
  const x = new Float64Array(T * C);
  tokens.forEach((token, t) => {
    for (let i = 0; i < C; i += 1) x[t * C + i] = table[token * C + i]! + positions[t * C + i]!;
  });
  const [q, k, v] = ["query", "key", "value"].map((name) => linear(x, w(`attention.${name}.weight`), null, C)) as [Numbers, Numbers, Numbers];
  const looks = new Float64Array(H * T * T);
  const joined = new Float64Array(T * C);
  for (let h = 0; h < H; h += 1)
    for (let t = 0; t < T; t += 1) {
      const scores = new Float64Array(t + 1); // causal mask
      for (let s = 0; s <= t; s += 1) {
        for (let d = 0; d < D; d += 1) scores[s]! += q[t * C + h * D + d]! * k[s * C + h * D + d]!;
        scores[s]! /= Math.sqrt(D);
      }
      softmax(scores).forEach((weight, s) => {
        looks[(h * T + t) * T + s] = weight;
        for (let d = 0; d < D; d += 1) joined[t * C + h * D + d]! += weight * v[s * C + h * D + d]!;
      });
    }
  const attended = linear(joined, w("attention.output.weight"), null, C);
  const first = layerNorm(x.map((each, i) => each + attended[i]!), w("attention_norm.weight"), w("attention_norm.bias"));
  const inner = linear(first.y, w("feedforward.up.weight"), w("feedforward.up.bias"), C).map((each) => Math.max(0, each));
  const thought = linear(inner, w("feedforward.down.weight"), w("feedforward.down.bias"), config.inner);
  const second = layerNorm(first.y.map((each, i) => each + thought[i]!), w("feedforward_norm.weight"), w("feedforward_norm.bias"));
  const logits = linear(second.y, w("head.weight"), w("head.bias"), C);
  const probabilities = new Float64Array(T * V);
  for (let t = 0; t < T; t += 1) probabilities.set(softmax(logits.slice(t * V, (t + 1) * V)), t * V);
  return { tokens, x, q, k, v, looks, joined, first, inner, second, probabilities };
}

function backward(config: MiniConfig, w: (name: string) => Numbers, g: (name: string) => Numbers, kept: Kept, dlogits: Numbers): void {
  const { width: C, heads: H } = config;
  const T = kept.tokens.length;
  const D = C / H;
  const dsecond = linearBack(dlogits, kept.second.y, w("head.weight"), g("head.weight"), g("head.bias"), C);
  const dsum2 = layerNormBack(dsecond, kept.second, w("feedforward_norm.weight"), g("feedforward_norm.weight"), g("feedforward_norm.bias"));
  const dinner = linearBack(dsum2, kept.inner, w("feedforward.down.weight"), g("feedforward.down.weight"), g("feedforward.down.bias"), config.inner);
  const dup = dinner.map((each, i) => (kept.inner[i]! > 0 ? each : 0));
  const dthought = linearBack(dup, kept.first.y, w("feedforward.up.weight"), g("feedforward.up.weight"), g("feedforward.up.bias"), C);
  const dfirst = dsum2.map((each, i) => each + dthought[i]!);
  const dsum1 = layerNormBack(dfirst, kept.first, w("attention_norm.weight"), g("attention_norm.weight"), g("attention_norm.bias"));
  const djoined = linearBack(dsum1, kept.joined, w("attention.output.weight"), g("attention.output.weight"), null, C);
  const [dq, dk, dv] = [new Float64Array(T * C), new Float64Array(T * C), new Float64Array(T * C)];
  for (let h = 0; h < H; h += 1)
    for (let t = 0; t < T; t += 1) {
      const look = (s: number): number => kept.looks[(h * T + t) * T + s]!;
      const dlook = new Float64Array(t + 1);
      for (let s = 0; s <= t; s += 1)
        for (let d = 0; d < D; d += 1) {
          dlook[s]! += djoined[t * C + h * D + d]! * kept.v[s * C + h * D + d]!;
          dv[s * C + h * D + d]! += djoined[t * C + h * D + d]! * look(s);
        }
      const along = dlook.reduce((sum, each, s) => sum + each * look(s), 0);
      for (let s = 0; s <= t; s += 1) {
        const dscore = (look(s) * (dlook[s]! - along)) / Math.sqrt(D);
        for (let d = 0; d < D; d += 1) {
          dq[t * C + h * D + d]! += dscore * kept.k[s * C + h * D + d]!;
          dk[s * C + h * D + d]! += dscore * kept.q[t * C + h * D + d]!;
        }
      }
    }
  const back = [["query", dq], ["key", dk], ["value", dv]] as const;
  const through = back.map(([name, d]) => linearBack(d, kept.x, w(`attention.${name}.weight`), g(`attention.${name}.weight`), null, C));
  const [dtable, dpositions] = [g("tokens.weight"), g("positions.table.weight")];
  kept.tokens.forEach((token, t) => {
    for (let i = 0; i < C; i += 1) {
      const d = dsum1[t * C + i]! + through.reduce((sum, each) => sum + each[t * C + i]!, 0);
      dtable[token * C + i]! += d;
      dpositions[t * C + i]! += d;
    }
  });
}
