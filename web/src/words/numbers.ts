/** Numbers in each language: Bangla digits grouped by lakh and crore, Latin ones by thousands. */
import type { Language } from "@/state/preferences.svelte";

const BANGLA = "০১২৩৪৫৬৭৮৯";

/** Replace the Latin digits of a text with Bangla ones. */
export function banglaDigits(text: string): string {
  return text.replace(/[0-9]/g, (digit) => BANGLA[Number(digit)] ?? digit);
}

/** Replace the Bangla digits of a text with Latin ones, to parse input. */
export function latinDigits(text: string): string {
  return text.replace(/[০-৯]/g, (digit) => String(BANGLA.indexOf(digit)));
}

/** Parse a typed number in Latin or Bangla digits, grouped or not; null for empty or invalid text. */
export function typedNumber(text: string): number | null {
  const plain = latinDigits(text).replace("−", "-").replace(/[,\s]/g, "");
  const value = plain === "" ? Number.NaN : Number(plain);
  return Number.isFinite(value) ? value : null;
}

/** Parse a typed integer; null if it is invalid or out of range. */
export function wholeNumber(text: string | undefined, least: number, most: number): number | null {
  const value = typedNumber(text ?? "");
  return value !== null && Number.isInteger(value) && value >= least && value <= most ? value : null;
}

const MOST_PLACES = 6;
/** The number of decimals that a number needs: 2.7 has one, 3 none. */
export function placesOf(value: number): number {
  return value.toFixed(MOST_PLACES).replace(/\.?0+$/, "").split(".")[1]?.length ?? 0;
}

/** A number with a proper minus sign, grouped as its digits require. */
export function numeral(value: number, decimals: number | undefined, digits: Language, grouped = true): string {
  const plain = Math.abs(value).toFixed(decimals ?? (Number.isInteger(value) ? 0 : 2));
  const [whole = "0", rest] = plain.split(".");
  let shown = whole;
  if (grouped) shown = Number(whole).toLocaleString(digits === "bn" ? "en-IN" : "en");
  const text = (value < 0 && Number(plain) !== 0 ? "−" : "") + shown + (rest === undefined ? "" : `.${rest}`);
  return digits === "bn" ? banglaDigits(text) : text;
}
