/** Numbers encoded as base64. */
import { bytesOf } from "@/math/base64";
import type { Tile } from "@/math/tiles";

/** A matrix of 16-bit numbers for each head; `one` is the stored value of a weight of 1. */
export function unpacked(packed: string, [heads, rows, columns]: readonly [number, number, number], one: number): Tile[] {
  const view = new DataView(bytesOf(packed).buffer);
  return Array.from({ length: heads }, (_, head) => {
    const values = new Float32Array(rows * columns);
    for (let i = 0; i < values.length; i += 1) values[i] = view.getUint16(2 * (head * values.length + i), true) / one;
    return { rows, columns, values };
  });
}

/** RGB, row by row, as an image. */
export function pictureOf(image: { height: number; width: number; pixels: string }): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const [context, bytes] = [canvas.getContext("2d"), bytesOf(image.pixels)];
  const shown = context?.createImageData(image.width, image.height);
  if (context == null || shown === undefined) return canvas;
  for (let i = 0; i < image.width * image.height; i += 1) shown.data.set([...bytes.subarray(3 * i, 3 * i + 3), 255], 4 * i);
  context.putImageData(shown, 0, 0);
  return canvas;
}
