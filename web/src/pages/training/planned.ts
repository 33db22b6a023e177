/** Figures and reasons of a plan, in the reader's language. */
import words from "@words/plan.json";
import { preferences } from "@/state/preferences.svelte";
import { formsOf, recognize } from "@/words/forms";
import { fill } from "@/words/index.svelte";
import { banglaDigits } from "@/words/numbers";

type Key = keyof typeof words;
const FORMS = formsOf(words, (Object.keys(words) as Key[]).filter((key) => /^(why|not|source)\./.test(key)));

const inDigits = (text: string): string => (preferences.language === "bn" ? banglaDigits(text) : text);

/** A reason that the library gives in English; one that is not known stays as it came. */
export function inWords(sentence: string): string {
  const known = recognize(FORMS, sentence);
  if (known === null) return sentence;
  const filling = Object.fromEntries(Object.entries(known.found).map(([name, text]) => [name, /^[\d,]+$/.test(text) ? Number(text.replaceAll(",", "")) : inDigits(text)]));
  return fill(words[known.key][preferences.language], filling, preferences.language);
}

/** A value as it stands beside its name: 2 x 96 as 2 × 96. */
export function shortValue(value: string): string {
  return inDigits(value.replaceAll(" x ", " × "));
}

/** A number with three digits that count, and no power of ten: 0.0003, 0.0154, 989. */
export function threeDigits(value: number): string {
  const decimals = value > 0 ? Math.max(0, 2 - Math.floor(Math.log10(value))) : 0;
  return inDigits(value.toFixed(Math.min(20, decimals)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A count that nobody reads digit by digit: 33218887680 as 3.32 × 10¹⁰. */
export function power(count: number): string {
  if (count < 1e6) return inDigits(String(Math.round(count)));
  const [digits = "", exponent = ""] = count.toExponential(2).split("e+");
  return inDigits(`${digits} × 10`) + [...exponent].map((digit) => RAISED[Number(digit)]).join("");
}
