/**
 * The matrix product of a step: a matrix of integers, with a scale for each row, times a vector.
 * Rows and vectors are padded with zeros to full lanes, so that the SIMD version (`simd.ts`) needs no remainder loop.
 */

export const LANES = 16;

export interface Matrix {
  /** (outs, stride), each row padded with zeros. */
  whole: Int8Array;
  scale: Float32Array;
  bias: Float32Array | null;
  outs: number;
  stride: number;
}

/** matrix (outs, width), x (width) -> y (outs); the bias is not added here. */
export type Product = (matrix: Matrix, x: Float32Array, y: Float32Array) => void;

export function padded(width: number): number {
  return Math.ceil(width / LANES) * LANES;
}

/** The readable version of the product; used if a browser has no WebAssembly, or its policy forbids it. */
export const plainProduct: Product = (matrix, x, y) => {
  const { whole, scale, outs, stride } = matrix;
  for (let row = 0, at = 0; row < outs; row += 1, at += stride) {
    let even = 0;
    let odd = 0;
    for (let k = 0; k < stride; k += 2) {
      even += whole[at + k]! * x[k]!;
      odd += whole[at + k + 1]! * x[k + 1]!;
    }
    y[row] = (even + odd) * scale[row]!;
  }
};

/** An allocator of arrays in one block of memory, from its start. */
export class Arena {
  private used = 16; // so that no array has address 0, which looks like a null pointer

  constructor(readonly buffer: ArrayBuffer) {}

  floats(count: number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.buffer, this.take(4 * count), count);
  }

  bytes(count: number): Int8Array<ArrayBuffer> {
    return new Int8Array(this.buffer, this.take(count), count);
  }

  private take(bytes: number): number {
    const at = this.used;
    this.used = Math.ceil((at + bytes) / 16) * 16;
    if (this.used > this.buffer.byteLength) throw new Error(`no room for ${bytes} bytes more`);
    return at;
  }
}
