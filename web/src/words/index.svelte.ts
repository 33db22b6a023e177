/** The words of the page, in two languages from one catalogue; `{name}` is filled in, numbers as the sentence asks. */
import { preferences, type Language } from "@/state/preferences.svelte";
import { banglaDigits, numeral } from "./numbers";

export type Catalogue = Record<string, { en: string; bn: string }>;
/** A number with so many decimals, or one that is not grouped, such as an id. */
export interface Figure {
  value: number;
  decimals?: number;
  grouped?: boolean;
}
export type Filling = Record<string, string | number | Figure>;
export type Say<C extends Catalogue> = (key: keyof C & string, filling?: Filling) => string;

// A sentence with code, a formula, a shape or a power has Latin digits; every other Bangla sentence has Bangla ones.
const FORMULA = /[`=×/^√→]|\(\s*\{|\d\s*,\s*\d+\s*\)|\de[-+]?\d/;

// Who has no pointer is told to tap, where a phrase has a twin that says so.
const finger = globalThis.matchMedia?.("(hover: none)").matches ?? false;

/** How the words of one catalogue are said now; reads the language, so what shows it follows. */
export function phrases<C extends Catalogue>(catalogue: C): Say<C> {
  return (key, filling = {}) => {
    const entry = (finger ? catalogue[`${key}.touch`] : undefined) ?? catalogue[key];
    if (entry === undefined) throw new Error(`no words for ${key}`);
    return fill(entry[preferences.language], filling, preferences.language);
  };
}

/** Fill a phrase in, sentence by sentence. */
export function fill(phrase: string, filling: Filling, language: Language): string {
  return phrase
    .split(/(?<=[।?!.]\s)/)
    .map((sentence) => {
      const digits = language === "bn" && !FORMULA.test(sentence) ? "bn" : "en";
      return sentence.replace(/\{(\w+)\}/g, (whole, name: string) => {
        const given = filling[name];
        if (given === undefined) return whole;
        if (typeof given === "string") return given;
        if (typeof given === "number") return numeral(given, undefined, digits);
        return numeral(given.value, given.decimals, digits, given.grouped ?? true);
      });
    })
    .join("");
}

/** A number that stands alone, in the digits of the page's language. */
export function figure(value: number, decimals?: number): string {
  return numeral(value, decimals, preferences.language);
}

/** A number in a matrix, on an axis or in a worked line: Latin, unless the reader turned matrices over. */
export function cell(value: number, decimals: number): string {
  return numeral(value, decimals, preferences.banglaMatrices ? "bn" : "en", false);
}

/** A share as a percentage, closed up in Bangla. */
export function percent(share: number, decimals = 1): string {
  return preferences.language === "bn" ? `${figure(100 * share, decimals)}%` : `${figure(100 * share, decimals)} %`;
}

/** A number with so many digits that count, as a table of figures has it. */
export function significant(value: number | null | undefined, digits = 3): string {
  if (value == null) return "–";
  const size = Math.abs(value);
  const plain = size !== 0 && (size >= 1e6 || size < 1e-4) ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  const text = plain.replaceAll("-", "−");
  return preferences.banglaMatrices ? banglaDigits(text) : text;
}
