/** Images for a model: a PNG is sent unchanged, other formats are converted to PNG; images are sent only to the server of this page. */
import { bytesOf } from "@/math/base64";

const SIZE = 64;
// More pixels than any model uses; larger images are scaled down before sending.
const LARGEST = 512;
const MOST_BYTES = 700_000;
const MOST_PIXELS = 4_000_000; // a plain colour takes few bytes at any size, and the server decodes no larger images

/** An example image as PNG in base64: a three, drawn here. */
export function defaultImage(): string {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [SIZE, SIZE];
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("this browser draws nothing");
  context.fillRect(0, 0, SIZE, SIZE);
  context.fillStyle = "#fff";
  context.font = "bold 58px sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText("3", SIZE / 2, SIZE / 2 + 3);
  return encoded(canvas);
}

export function shownOn(canvas: HTMLCanvasElement, picture: ImageBitmap): void {
  const scale = Math.min(1, LARGEST / Math.max(picture.width, picture.height));
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
}

/** Convert an image to PNG in base64. */
export async function pngOf(file: File, picture: ImageBitmap): Promise<string> {
  if (file.type === "image/png" && file.size <= MOST_BYTES && picture.width * picture.height <= MOST_PIXELS) {
    return btoa(Array.from(new Uint8Array(await file.arrayBuffer()), (byte) => String.fromCharCode(byte)).join(""));
  }
  const canvas = document.createElement("canvas");
  shownOn(canvas, picture);
  return encoded(canvas);
}

/** The pixels of a PNG in base64. */
export function pixelsOf(png: string): Promise<ImageBitmap> {
  return createImageBitmap(new Blob([bytesOf(png)], { type: "image/png" }));
}

function encoded(canvas: HTMLCanvasElement): string {
  return canvas.toDataURL("image/png").replace(/^[^,]*,/, "");
}
