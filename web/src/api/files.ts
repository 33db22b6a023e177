/** The text of a file that was brought: a browser's own `text()` puts a mark for what it cannot read, and nobody notices. */
import { ApiError } from "./client";

/** What is wrong with a file whose bytes are no text; its name is the error's `param`. */
export const NO_TEXT = "no_text";

export async function textOf(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    return new TextDecoder(encoding(bytes), { fatal: true }).decode(bytes); // which leaves out the mark of the encoding
  } catch {
    throw new ApiError(`${file.name} is no text in UTF-8`, -1, NO_TEXT, file.name);
  }
}

/** Windows saves "Unicode text" as UTF-16, and says so in the first two bytes. */
function encoding(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
}
