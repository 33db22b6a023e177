/** Typed numbers: Bangla digits, powers of ten, fractions, percentages; and the precision of each.
 * The counterpart of `readings` in `course/exercises/number_comparison.py`; the tests of both languages share one list of cases. */
import { latinDigits } from "@/words/numbers";

export interface Typed {
  value: number;
  /** The value of one unit in the last digit; 0 for an exact number. */
  step: number;
  /** The number of significant digits. */
  digits: number;
}

/** Significant digits of an exact number. */
export const ENOUGH = 15;
const MOST_POWER = 290;
const RAISED = "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹";
const POWER = /\s*[×x*·]\s*10\s*(?:(?:\^|\*\*)\s*\(?\s*([-+]?\d+)\s*\)?|([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))/gi;
const RAISED_TO = /(?<![\d.])(\d{1,4})\s*(?:\^|\*\*)\s*(\d{1,2})(?![\d.])/g;
const GROUPED = /(?<![\d.,])\d{1,3}(?:,\d{2,3})*,\d{3}(?![\d,])/g;
const PLAIN = String.raw`(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3}(?!\d))?`;
const NUMBER = new RegExp(
  String.raw`(?<![a-z_\d.])(?<sign>[-+]?)\s?(?:(?<endless>∞|inf(?:inity)?\b)|(?<top>${PLAIN})(?:\s*/\s*(?<bottom>${PLAIN}))?\s*(?<percent>%)?)`,
  "gi",
);

/** The numbers in an answer, for each interpretation of its commas; if there are equals signs, only the text after the last one counts. */
export function readings(text: string): Typed[][] {
  let plain = latinDigits(text).replace(/[−–]/g, "-").split("=").at(-1) ?? "";
  plain = plain.replace(POWER, (_, power?: string, raised?: string) => `e${power ?? lowered(raised ?? "")}`);
  plain = plain.replace(RAISED_TO, (_, base: string, power: string) => String(BigInt(base) ** BigInt(power)));
  plain = plain.replace(/[()[\]{}|;]|(?<=[\d\s])[×x*](?=[\d\s])/gi, " ");
  const ways = new Set([plain.replace(GROUPED, (found) => found.replaceAll(",", "")), plain]);
  return [...ways].map((way) => [...way.replaceAll(",", " ").matchAll(NUMBER)].map(typed));
}

function typed(found: RegExpMatchArray): Typed {
  const parts = found.groups ?? {};
  const sign = parts.sign === "-" ? -1 : 1;
  if (parts.endless) return { value: sign * Infinity, step: 0, digits: ENOUGH };
  const scale = parts.percent ? 0.01 : 1;
  const top = Number(parts.top);
  if (parts.bottom) {
    const bottom = Number(parts.bottom);
    return { value: bottom === 0 ? NaN : (sign * scale * top) / bottom, step: 0, digits: ENOUGH };
  }
  const [mantissa = "", power = "0"] = (parts.top ?? "").toLowerCase().split("e");
  const decimals = mantissa.split(".")[1]?.length ?? 0;
  const digits = mantissa.replace(".", "").replace(/^0+/, "").length;
  const last = Math.max(-MOST_POWER, Math.min(MOST_POWER, Number(power) - decimals));
  return { value: sign * scale * top, step: scale * 10 ** last, digits };
}

function lowered(raised: string): string {
  return [...raised].map((each) => "-+0123456789"[RAISED.indexOf(each)] ?? "").join("");
}
