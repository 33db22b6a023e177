/**
 * The product in WebAssembly, with sixteen numbers at a time (SIMD), assembled here from about sixty instructions, so that
 * no compiler is needed. The opcodes are those of the core specification.
 */
import type { Matrix, Product } from "./products";

const LOCAL_GET = 0x20;
const LOCAL_SET = 0x21;
const I32_CONST = 0x41;
const I32_ADD = 0x6a;
const I32_LT_U = 0x49;
const I32_MUL = 0x6c;
const F32_LOAD = [0x2a, 2, 0];
const F32_STORE = [0x38, 2, 0];
const F32_ADD = 0x92;
const F32_MUL = 0x94;
const LOOP = [0x03, 0x40];
const BR_IF_LOOP = [0x0d, 0];
const END = 0x0b;
const V128_LOAD = (offset: number) => [0xfd, 0x00, 0, offset];
const V128_ZERO = [0xfd, 0x0c, ...new Array<number>(16).fill(0)];
const LOAD_EIGHT_BYTES = (offset: number) => [0xfd, 0x01, 0, offset]; // v128.load8x8_s: eight int8 as int16
const WIDEN_LOW = [0xfd, 0xa7, 0x01]; // i32x4.extend_low_i16x8_s
const WIDEN_HIGH = [0xfd, 0xa8, 0x01];
const TO_FLOATS = [0xfd, 0xfa, 0x01]; // f32x4.convert_i32x4_s
const F32X4_ADD = [0xfd, 0xe4, 0x01];
const F32X4_MUL = [0xfd, 0xe6, 0x01];
const LANE = (lane: number) => [0xfd, 0x1f, lane]; // f32x4.extract_lane
const I32 = 0x7f;
const V128 = 0x7b;

// product(weights, scales, x, y, outs, stride): parameters, then local variables.
const [WEIGHTS, SCALES, X, Y, OUTS, STRIDE, X_AT, X_END, Y_END, EIGHT, SUM] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const;
const SUMS = [SUM, SUM + 1, SUM + 2, SUM + 3];

const get = (local: number) => [LOCAL_GET, local];
const set = (local: number) => [LOCAL_SET, local];
const advance = (local: number, bytes: number) => [...get(local), I32_CONST, bytes, I32_ADD, ...set(local)];

/** Multiply four of eight int16 by four numbers of x, and add them to a sum. */
function onto(sum: number, widen: number[], xOffset: number): number[] {
  const weights = [...get(EIGHT), ...widen, ...TO_FLOATS];
  return [...get(sum), ...weights, ...get(X_AT), ...V128_LOAD(xOffset), ...F32X4_MUL, ...F32X4_ADD, ...set(sum)];
}

function body(): number[] {
  const sixteen = [
    ...[...get(WEIGHTS), ...LOAD_EIGHT_BYTES(0), ...set(EIGHT), ...onto(SUM, WIDEN_LOW, 0), ...onto(SUM + 1, WIDEN_HIGH, 16)],
    ...[...get(WEIGHTS), ...LOAD_EIGHT_BYTES(8), ...set(EIGHT), ...onto(SUM + 2, WIDEN_LOW, 32), ...onto(SUM + 3, WIDEN_HIGH, 48)],
    ...[...advance(WEIGHTS, 16), ...get(X_AT), I32_CONST, 0xc0, 0x00, I32_ADD, ...set(X_AT)], // 64, as a signed LEB128
  ];
  const together = [...get(SUM), ...get(SUM + 1), ...F32X4_ADD, ...get(SUM + 2), ...get(SUM + 3), ...F32X4_ADD, ...F32X4_ADD, ...set(SUM)];
  const across = [...get(SUM), ...LANE(0), ...[1, 2, 3].flatMap((lane) => [...get(SUM), ...LANE(lane), F32_ADD])];
  const row = [
    ...SUMS.flatMap((sum) => [...V128_ZERO, ...set(sum)]),
    ...[...get(X), ...set(X_AT)],
    ...[...LOOP, ...sixteen, ...get(X_AT), ...get(X_END), I32_LT_U, ...BR_IF_LOOP, END],
    ...together,
    ...[...get(Y), ...across, ...get(SCALES), ...F32_LOAD, F32_MUL, ...F32_STORE],
    ...[...advance(Y, 4), ...advance(SCALES, 4)],
  ];
  const ends = [
    ...[...get(X), ...get(STRIDE), I32_CONST, 4, I32_MUL, I32_ADD, ...set(X_END)],
    ...[...get(Y), ...get(OUTS), I32_CONST, 4, I32_MUL, I32_ADD, ...set(Y_END)],
  ];
  return [...ends, ...LOOP, ...row, ...get(Y), ...get(Y_END), I32_LT_U, ...BR_IF_LOOP, END, END];
}

/** A number in the encoding of WebAssembly (LEB128). */
function leb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)];
}

const named = (text: string) => [text.length, ...[...text].map((letter) => letter.charCodeAt(0))];
const section = (id: number, content: number[]) => [id, ...leb(content.length), ...content];

function assembled(): Uint8Array<ArrayBuffer> {
  const code = [2, 3, I32, 5, V128, ...body()]; // two kinds of locals: three i32, five v128
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 6, I32, I32, I32, I32, I32, I32, 0]), // one type: six i32 parameters, no result
    ...section(2, [1, ...named("room"), ...named("memory"), 0x02, 0x00, 1]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...named("product"), 0x00, 0]),
    ...section(10, [1, ...leb(code.length), ...code]),
  ]);
}

type Raw = (weights: number, scales: number, x: number, y: number, outs: number, stride: number) => void;

/** The product over arrays in `memory`; null if this browser, or its policy, does not support WebAssembly with SIMD. */
export async function simdProduct(memory: WebAssembly.Memory): Promise<Product | null> {
  try {
    const { instance } = await WebAssembly.instantiate(assembled(), { room: { memory } });
    const raw = instance.exports.product as Raw;
    return (matrix: Matrix, x, y) => {
      const { whole, scale, outs, stride } = matrix;
      if (whole.length === 0) y.fill(0, 0, outs); // its loops run at least once
      else raw(whole.byteOffset, scale.byteOffset, x.byteOffset, y.byteOffset, outs, stride);
    };
  } catch {
    return null;
  }
}
