/** The page's texts in two languages from one catalogue; `{name}` is filled in with the digits that the sentence uses. */
import { preferences, type Language } from "@/state/preferences.svelte";
import { banglaDigits, numeral } from "./numbers";

export type Catalogue = Record<string, { en: string; bn: string }>;
/** A number with a given number of decimals, or without grouping, such as an id. */
export interface Figure {
  value: number;
  decimals?: number;
  grouped?: boolean;
}
export type Filling = Record<string, string | number | Figure>;
export type Say<C extends Catalogue> = (key: keyof C & string, filling?: Filling) => string;

// Bangla sentences with code, a formula, a shape or a power have Latin digits; all others have Bangla digits.
const FORMULA = /[`=×/^√→]|\(\s*\{|\d\s*,\s*\d+\s*\)|\de[-+]?\d/;

// On touch devices, the variant of a phrase that says "tap" is used, if there is one.
const finger = globalThis.matchMedia?.("(hover: none)").matches ?? false;

/** Look up texts of one catalogue; reads the language, so that components are updated when it changes. */
export function phrases<C extends Catalogue>(catalogue: C): Say<C> {
  return (key, filling = {}) => {
    const entry = (finger ? catalogue[`${key}.touch`] : undefined) ?? catalogue[key];
    if (entry === undefined) throw new Error(`no words for ${key}`);
    return fill(entry[preferences.language], filling, preferences.language);
  };
}

/** Fill in a phrase, sentence by sentence. */
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

/** A number in a matrix, on an axis or in a worked line: Latin, unless the reader selected Bangla digits for matrices. */
export function cell(value: number, decimals: number): string {
  return numeral(value, decimals, preferences.banglaMatrices ? "bn" : "en", false);
}

/** A share as a percentage, without a space in Bangla. */
export function percent(share: number, decimals = 1): string {
  return preferences.language === "bn" ? `${figure(100 * share, decimals)}%` : `${figure(100 * share, decimals)} %`;
}

/** A number with a given number of significant digits, as in a table. */
export function significant(value: number | null | undefined, digits = 3): string {
  if (value == null) return "–";
  const size = Math.abs(value);
  const plain = size !== 0 && (size >= 1e6 || size < 1e-4) ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  const text = plain.replaceAll("-", "−");
  return preferences.banglaMatrices ? banglaDigits(text) : text;
}
