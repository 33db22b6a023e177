/**
 * A GPT that processes one token at a time: the counterpart of `model/gpt.py` and its parts, with a KV cache. Weights are
 * integers with a scale for each row, everything else is float32, so the numbers equal those of the library with the same
 * weights, except for the order of sums. Tests compare the two.
 */
import type { ArrayPlace, Description, ModelShape } from "./description";
import { Arena, padded, plainProduct, type Matrix, type Product } from "./products";
import { simdProduct } from "./simd";

interface Norm {
  weight: Float32Array;
  bias: Float32Array | null;
}

interface Layer {
  /** For each remaining head, the index of its key head. */
  keyOf: number[];
  query: Matrix;
  key: Matrix;
  value: Matrix;
  output: Matrix;
  queryNorm: Norm | null;
  keyNorm: Norm | null;
  attentionNorm: Norm;
  feedforwardNorm: Norm;
  up: Matrix;
  gate: Matrix | null;
  down: Matrix;
  /** (context, key heads, D). */
  keys: Float32Array;
  values: Float32Array;
  /** The attention weights of the last token: (heads, context). */
  weights: Float32Array;
}

const PAGE = 65_536;

/** The memory for the weights, the cache and the vectors of a step, with padding. */
function roomFor(description: Description): number {
  const { model: m, arrays } = description;
  const weights = arrays.reduce((sum, { shape, type }) => {
    const [rows = 1, width = rows] = shape;
    return sum + 32 + (type === "int8" ? rows * padded(width) : 4 * padded(rows));
  }, 0);
  const cache = 4 * m.n_layers * m.context_length * (2 * m.n_kv_heads * m.d_head + m.n_heads);
  const vectors = 4 * (6 * padded(Math.max(m.d_model, m.n_heads * m.d_head)) + 4 * padded(m.d_ff) + m.vocab_size);
  return weights + cache + vectors + 64 * (m.n_layers + 16);
}

/** Load the weights of a single file; `simd` false uses the plain product. */
export async function openModel(description: Description, packed: ArrayBuffer, simd = true): Promise<Gpt> {
  const bytes = roomFor(description);
  if (simd && typeof WebAssembly !== "undefined") {
    const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
    const product = await simdProduct(memory);
    if (product !== null) return new Gpt(description, packed, new Arena(memory.buffer as ArrayBuffer), product, true);
  }
  return new Gpt(description, packed, new Arena(new ArrayBuffer(bytes)), plainProduct, false);
}

export class Gpt {
  readonly shape: ModelShape;
  readonly logits: Float32Array;
  private readonly layers: Layer[];
  private readonly tokens: Matrix;
  private readonly places: Matrix | null;
  private readonly head: Matrix;
  private readonly last: Norm | null;
  private readonly x: Float32Array;
  private readonly read: Float32Array;
  private readonly out: Float32Array;
  private readonly queries: Float32Array;
  private readonly mixed: Float32Array;
  private readonly inner: Float32Array;
  private readonly gated: Float32Array;

  constructor(description: Description, packed: ArrayBuffer, arena: Arena, private readonly product: Product, readonly simd: boolean) {
    const shape = description.model;
    this.shape = shape;
    const stored = new Map(description.arrays.map((each) => [each.name, each]));
    const vector = (name: string) => (stored.has(name) ? copyFloats(arena, packed, stored.get(name)!) : null);
    const matrix = (name: string): Matrix => copyMatrix(arena, packed, stored, `${name}.weight`, vector(`${name}.bias`));
    const norm = (name: string): Norm | null => {
      const weight = vector(`${name}.weight`);
      return weight === null ? null : { weight, bias: vector(`${name}.bias`) };
    };
    this.tokens = matrix("tokens");
    this.places = shape.positions === "learned" ? matrix("positions.table") : null;
    this.layers = Array.from({ length: shape.n_layers }, (_, number) => {
      const at = `stack.blocks.${number}`;
      const keyOf = keyHeads(shape, number);
      const width = shape.context_length * (Math.max(-1, ...keyOf) + 1) * shape.d_head;
      return {
        keyOf,
        query: matrix(`${at}.attention.query`),
        key: matrix(`${at}.attention.key`),
        value: matrix(`${at}.attention.value`),
        output: matrix(`${at}.attention.output`),
        queryNorm: norm(`${at}.attention.query_norm`),
        keyNorm: norm(`${at}.attention.key_norm`),
        attentionNorm: norm(`${at}.attention_norm`)!,
        feedforwardNorm: norm(`${at}.feedforward_norm`)!,
        up: matrix(`${at}.feedforward.up`),
        gate: shape.activation === "swiglu" ? matrix(`${at}.feedforward.gate`) : null,
        down: matrix(`${at}.feedforward.down`),
        keys: arena.floats(width),
        values: arena.floats(width),
        weights: arena.floats(keyOf.length * shape.context_length),
      };
    });
    this.last = shape.final_norm ? norm("stack.norm") : null;
    const bias = vector("head.bias");
    this.head = stored.has("head.weight") ? { ...matrix("head"), bias } : { ...this.tokens, bias };
    const wide = padded(Math.max(shape.d_model, shape.n_heads * shape.d_head));
    [this.x, this.read, this.out] = [arena.floats(wide), arena.floats(wide), arena.floats(wide)];
    [this.queries, this.mixed] = [arena.floats(wide), arena.floats(wide)];
    [this.inner, this.gated] = [arena.floats(padded(shape.d_ff)), arena.floats(padded(shape.d_ff))];
    this.logits = arena.floats(shape.vocab_size);
  }

  /** The attention weights of the last step's token over the earlier tokens and itself: for each layer, one row per head. */
  attention(length: number): Float32Array[][] {
    const { context_length } = this.shape;
    return this.layers.map(({ weights, keyOf }) => keyOf.map((_, head) => weights.slice(head * context_length, head * context_length + length)));
  }

  /** Process a token at its position, after all earlier ones; `this.logits` then has the next-token logits, if requested. */
  step(token: number, position: number, wanted = true): void {
    this.enter(token, position);
    for (const layer of this.layers) {
      this.around(layer.attentionNorm, () => this.attend(layer, position));
      this.around(layer.feedforwardNorm, () => this.feed(layer));
    }
    if (!wanted) return;
    if (this.last !== null) this.normalize(this.last, this.x, this.x);
    this.multiply(this.head, this.x, this.logits);
  }

  private multiply(matrix: Matrix, x: Float32Array, y: Float32Array): void {
    this.product(matrix, x, y);
    if (matrix.bias !== null) for (let row = 0; row < matrix.outs; row += 1) y[row]! += matrix.bias[row]!;
  }

  /** The token's embedding row, plus its position embedding if there is one. */
  private enter(token: number, position: number): void {
    const { d_model, positions } = this.shape;
    addRow(this.tokens, token, this.x.fill(0), d_model);
    if (this.places !== null) addRow(this.places, position, this.x, d_model);
    if (!positions.startsWith("sinusoidal")) return;
    const half = d_model / 2;
    for (let pair = 0; pair < half; pair += 1) {
      const angle = position / 10_000 ** ((2 * pair) / d_model);
      const [sine, cosine] = positions === "sinusoidal" ? [2 * pair, 2 * pair + 1] : [pair, pair + half];
      this.x[sine]! += Math.sin(angle);
      this.x[cosine]! += Math.cos(angle);
    }
  }

  /** The residual connection around a part: the part reads `this.read` and writes its output to `this.out`. */
  private around(norm: Norm, part: () => void): void {
    const { d_model, norm_order } = this.shape;
    if (norm_order === "pre") this.normalize(norm, this.x, this.read);
    else this.read.set(this.x);
    part();
    for (let k = 0; k < d_model; k += 1) this.x[k]! += this.out[k]!;
    if (norm_order === "post") this.normalize(norm, this.x, this.x);
  }

  private normalize(norm: Norm, from: Float32Array, to: Float32Array): void {
    normalized(norm, from, to, this.shape.d_model, this.shape.norm_eps, this.shape.norm === "layer");
  }

  private attend(layer: Layer, position: number): void {
    const { d_head, context_length } = this.shape;
    const nKeys = layer.key.outs / d_head;
    const at = position * nKeys * d_head;
    const key = layer.keys.subarray(at, at + nKeys * d_head);
    this.multiply(layer.query, this.read, this.queries);
    this.multiply(layer.key, this.read, key);
    this.multiply(layer.value, this.read, layer.values.subarray(at, at + nKeys * d_head));
    this.settle(layer.keyNorm, key, nKeys, position);
    this.settle(layer.queryNorm, this.queries, layer.keyOf.length, position);
    this.mixed.fill(0);
    layer.keyOf.forEach((shared, head) => {
      const weights = layer.weights.subarray(head * context_length, head * context_length + position + 1);
      const query = this.queries.subarray(head * d_head, (head + 1) * d_head);
      weigh(query, layer.keys, weights, nKeys * d_head, shared * d_head);
      blend(weights, layer.values, this.mixed.subarray(head * d_head, (head + 1) * d_head), nKeys * d_head, shared * d_head);
    });
    this.multiply(layer.output, this.mixed, this.out);
  }

  /** Normalize the heads of a vector, and rotate them by their position. */
  private settle(norm: Norm | null, vectors: Float32Array, heads: number, position: number): void {
    const { d_head, norm_eps, positions, rotary_base } = this.shape;
    for (let head = 0; head < heads; head += 1) {
      const vector = vectors.subarray(head * d_head, (head + 1) * d_head);
      if (norm !== null) normalized(norm, vector, vector, d_head, norm_eps, false);
      if (positions === "rotary") rotate(vector, position, rotary_base);
    }
  }

  private feed(layer: Layer): void {
    const { d_ff, activation } = this.shape;
    this.multiply(layer.up, this.read, this.inner);
    if (layer.gate === null) {
      for (let k = 0; k < d_ff; k += 1) this.inner[k] = bend(this.inner[k]!, activation);
    } else {
      this.multiply(layer.gate, this.read, this.gated);
      for (let k = 0; k < d_ff; k += 1) this.inner[k]! *= this.gated[k]! / (1 + Math.exp(-this.gated[k]!));
    }
    this.multiply(layer.down, this.inner, this.out);
  }
}

/** For each remaining head of a layer, the index of its key head. */
function keyHeads(shape: ModelShape, layer: number): number[] {
  const gone = new Set(shape.removed_heads);
  const heads = Array.from({ length: shape.n_heads }, (_, head) => head).filter((head) => !gone.has(`blocks.${layer}.attention.${head}`));
  const shared = heads.map((head) => Math.floor((head * shape.n_kv_heads) / shape.n_heads));
  const kept = [...new Set(shared)].sort((a, b) => a - b);
  return shared.map((key) => kept.indexOf(key));
}

/** softmax(q · k / √D) over the keys of one head. */
function weigh(query: Float32Array, keys: Float32Array, weights: Float32Array, stride: number, offset: number): void {
  const width = query.length;
  const root = 1 / Math.sqrt(width);
  let largest = -Infinity;
  for (let s = 0; s < weights.length; s += 1) {
    const at = s * stride + offset;
    let sum = 0;
    for (let k = 0; k < width; k += 1) sum += query[k]! * keys[at + k]!;
    weights[s] = sum * root;
    largest = Math.max(largest, weights[s]!);
  }
  let total = 0;
  for (let s = 0; s < weights.length; s += 1) total += weights[s] = Math.exp(weights[s]! - largest);
  for (let s = 0; s < weights.length; s += 1) weights[s]! /= total;
}

function blend(weights: Float32Array, values: Float32Array, y: Float32Array, stride: number, offset: number): void {
  for (let s = 0; s < weights.length; s += 1) {
    const at = s * stride + offset;
    const weight = weights[s]!;
    for (let k = 0; k < y.length; k += 1) y[k]! += weight * values[at + k]!;
  }
}

function normalized(norm: Norm, from: Float32Array, to: Float32Array, width: number, eps: number, centred: boolean): void {
  let mean = 0;
  if (centred) {
    for (let k = 0; k < width; k += 1) mean += from[k]!;
    mean /= width;
  }
  let square = 0;
  for (let k = 0; k < width; k += 1) square += (from[k]! - mean) ** 2;
  const inverse = 1 / Math.sqrt(square / width + eps);
  for (let k = 0; k < width; k += 1) to[k] = (from[k]! - mean) * inverse * norm.weight[k]! + (norm.bias === null ? 0 : norm.bias[k]!);
}

/** Rotate each pair (i, i + D/2) by its angle; angles in float32, as in the library. */
function rotate(vector: Float32Array, position: number, base: number): void {
  const half = vector.length / 2;
  for (let k = 0; k < half; k += 1) {
    const speed = Math.fround(1 / Math.fround(base ** Math.fround((2 * k) / vector.length)));
    const angle = Math.fround(position * speed);
    const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
    const [first, second] = [vector[k]!, vector[k + half]!];
    vector[k] = first * cosine - second * sine;
    vector[k + half] = second * cosine + first * sine;
  }
}

function bend(x: number, activation: ModelShape["activation"]): number {
  if (activation === "relu") return Math.max(0, x);
  if (activation === "gelu") return 0.5 * x * (1 + erf(x / Math.SQRT2));
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

/** The error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26). */
export function erf(x: number): number {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

function addRow(table: Matrix, row: number, x: Float32Array, width: number): void {
  const scale = table.scale[row]!;
  for (let k = 0; k < width; k += 1) x[k]! += table.whole[row * table.stride + k]! * scale;
}

function copyFloats(arena: Arena, packed: ArrayBuffer, place: ArrayPlace): Float32Array {
  const count = place.shape.reduce((product, size) => product * size, 1);
  const copy = arena.floats(count);
  copy.set(new Float32Array(packed, place.start, count));
  return copy;
}

function copyMatrix(arena: Arena, packed: ArrayBuffer, stored: Map<string, ArrayPlace>, name: string, bias: Float32Array | null): Matrix {
  const place = stored.get(name);
  const scales = stored.get(`${name}.scale`);
  if (place === undefined || scales === undefined) throw new Error(`the file has no ${name}`);
  const [outs = 0, width = 0] = place.shape;
  const stride = padded(width);
  const whole = arena.bytes(outs * stride);
  for (let row = 0; row < outs; row += 1) whole.set(new Int8Array(packed, place.start + row * width, width), row * stride);
  return { whole, scale: copyFloats(arena, packed, scales), bias, outs, stride };
}
