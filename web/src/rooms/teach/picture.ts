/** Images for a model that sees: a PNG goes as it is, anything else is drawn anew as one. */

// More pixels than any model sees; what is larger is made smaller before it is sent.
const LARGEST = 512;
const MOST_BYTES = 700_000;
const MOST_PIXELS = 4_000_000; // a plain colour is few bytes however large it is, and the server unpacks no more

export function shownOn(canvas: HTMLCanvasElement, picture: ImageBitmap): void {
  const scale = Math.min(1, LARGEST / Math.max(picture.width, picture.height));
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
}

/** The image as a PNG in base64. */
export async function pngOf(file: File, picture: ImageBitmap): Promise<string> {
  if (file.type === "image/png" && file.size <= MOST_BYTES && picture.width * picture.height <= MOST_PIXELS) return base64(await file.arrayBuffer());
  const canvas = document.createElement("canvas");
  shownOn(canvas, picture);
  return canvas.toDataURL("image/png").replace(/^[^,]*,/, "");
}

function base64(bytes: ArrayBuffer): string {
  return btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(""));
}
