/** Numbers of a plan, in the reader's digits. */
import { preferences } from "@/state/preferences.svelte";
import { banglaDigits } from "@/words/numbers";

const inDigits = (text: string): string => (preferences.language === "bn" ? banglaDigits(text) : text);

/** A value as shown next to its name: 2 x 96 as 2 × 96. */
export function shortValue(value: string): string {
  return inDigits(value.replaceAll(" x ", " × "));
}

/** A number with three significant digits and without a power of ten: 0.0003, 0.0154, 989. */
export function threeDigits(value: number): string {
  const decimals = value > 0 ? Math.max(0, 2 - Math.floor(Math.log10(value))) : 0;
  return inDigits(value.toFixed(Math.min(20, decimals)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A large count in scientific notation: 33218887680 as 3.32 × 10¹⁰. */
export function power(count: number): string {
  if (count < 1e6) return inDigits(String(Math.round(count)));
  const [digits = "", exponent = ""] = count.toExponential(2).split("e+");
  return inDigits(`${digits} × 10`) + [...exponent].map((digit) => RAISED[Number(digit)]).join("");
}
