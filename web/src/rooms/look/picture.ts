/** An image as a model reads it: PNG in base64, whatever was dropped; nothing leaves this computer but to its server. */

const SIZE = 64;
const LARGEST = 512;

/** A picture to begin with: a three, drawn here. */
export function defaultImage(): string {
  const [canvas, context] = drawing(SIZE, SIZE);
  context.fillStyle = "#000";
  context.fillRect(0, 0, SIZE, SIZE);
  context.fillStyle = "#fff";
  context.font = "bold 58px sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText("3", SIZE / 2, SIZE / 2 + 3);
  return encoded(canvas);
}

export async function pngOf(file: File): Promise<string> {
  const image = await createImageBitmap(file);
  const scale = Math.min(1, LARGEST / Math.max(image.width, image.height));
  const [canvas, context] = drawing(Math.max(1, Math.round(image.width * scale)), Math.max(1, Math.round(image.height * scale)));
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return encoded(canvas);
}

/** The pixels of a PNG in base64. */
export async function pixelsOf(png: string): Promise<ImageBitmap> {
  const bytes = Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0));
  return createImageBitmap(new Blob([bytes], { type: "image/png" }));
}

function drawing(width: number, height: number): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("this browser draws nothing");
  return [canvas, context];
}

function encoded(canvas: HTMLCanvasElement): string {
  return canvas.toDataURL("image/png").replace(/^data:image\/png;base64,/, "");
}
