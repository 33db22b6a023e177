/** Uploaded files: check their text, store them on the server, and remove them if they are not used. */
import { ApiError, named, post, request, type Schemas } from "./client";

/** The problem of a file that cannot be used for training; the file name is the error's `param`. */
export const NO_TEXT = "no_text";
export const NO_WORDS = "no_words";
/** Formats whose text would have to be extracted (PDF, office, HTML), recognized by their first bytes. */
const WRAPPED = [
  ["no_pdf", /^%PDF-/],
  ["no_office", /^PK\x03\x04|^\xd0\xcf\x11\xe0|^\{\\rtf/],
  ["no_html", /^(?:\xef\xbb\xbf)?\s*(?:<!doctype html|<html[\s>])/i],
] as const;
export type Unfit = typeof NO_TEXT | typeof NO_WORDS | (typeof WRAPPED)[number][0];
export const UNFIT: readonly string[] = [NO_TEXT, NO_WORDS, ...WRAPPED.map(([code]) => code)];
const LOOKED_AT = 200;

export type FileType = NonNullable<Schemas["FileUpload"]["file_type"]>;
const FILE_TYPES: readonly FileType[] = ["txt", "jsonl", "csv", "tsv"];

/** The format of a file, by its name. */
export function fileTypeOf(name: string, otherwise: FileType): FileType {
  return FILE_TYPES.find((each) => name.toLowerCase().endsWith(`.${each}`)) ?? otherwise;
}

/** Read a file strictly: the browser's `text()` silently replaces bytes that it cannot decode. */
export async function textOf(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const begins = String.fromCharCode(...bytes.subarray(0, LOOKED_AT));
  const wrapped = WRAPPED.find(([, form]) => form.test(begins));
  if (wrapped !== undefined) throw unfit(file, wrapped[0]);
  const text = decoded(file, bytes);
  if (text.trim() === "") throw unfit(file, NO_WORDS);
  return text;
}

/** Whether a text is one document; in a txt file, blank lines separate documents. */
export function isOneDocument(text: string): boolean {
  return !/\n[^\S\n]*\n/.test(text.trim());
}

function decoded(file: File, bytes: Uint8Array): string {
  try {
    return new TextDecoder(encoding(bytes), { fatal: true }).decode(bytes); // removes the byte-order mark
  } catch {
    throw unfit(file, NO_TEXT);
  }
}

function unfit(file: File, code: Unfit): ApiError {
  return new ApiError(`${file.name} cannot be learned from: ${code}`, -1, code, file.name);
}

/** Windows saves "Unicode text" as UTF-16, which the first two bytes show. */
function encoding(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
}

/** Store a text on the server and return its id. */
export async function upload(text: Schemas["FileUpload"], signal?: AbortSignal): Promise<string> {
  return (await post("/api/files", text, signal)).id;
}

/** Remove unused files; errors are ignored, because the server removes such files itself when it needs the space. */
export function discardUploads(...ids: string[]): void {
  for (const id of ids) void request(named("/api/files/{id}", { id }), { method: "DELETE" }).catch(() => undefined);
}
