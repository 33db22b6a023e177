/** A message in the reader's language, from its English template, its values, and the Bangla of its template.
 *
 * The rules are those of `kotha/i18n/catalogue.py`: a Bangla sentence has Bangla digits, grouped by lakh, unless it
 * contains a formula, a shape or code. `tests/data/messages.json` tests both implementations. */

export type Language = "bn" | "en";
/** Bangla templates by their English. */
export type Templates = Readonly<Record<string, string>>;
type Amount = { size: number } | { duration: number } | { count: number };
type Option = { option: string; value: string | number | boolean | null };
export type Value = string | number | boolean | null | Message | Amount | Option | Value[];

/** A message as `to_json` writes it. */
export interface Message {
  template: string;
  values: Record<string, Value>;
  /** The English singular, if it differs. */
  one?: string;
  /** The English, filled in. */
  text?: string;
}

const SENTENCE = /(?:\{[^{}]*\}|[^।?!\n])+[।?!\n]*\s*/g;
const FORMULA = /[`=×/^√→[\]]|\(\{\w+[^}]*\}, |\(\d[\d,]*, |\de[-+]?\d/;
const FIELD = /\{\{|\}\}|\{(\w+)(?:!([rs]))?(?::([^}]*))?\}/g;
const SIZES: [number, string][] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
const TIMES: [string, string, number, number][] = [
  ["second", "সেকেন্ড", 1, 120],
  ["minute", "মিনিট", 60, 7200],
  ["hour", "ঘণ্টা", 3600, 259_200],
  ["day", "দিন", 86_400, Infinity],
];
const COUNTS: Record<Language, [number, string][]> = { en: [[1e9, "billion"], [1e6, "million"]], bn: [[1e7, "কোটি"], [1e5, "লাখ"]] };

/** A message in the reader's language; with `latin`, all its digits are Latin, as in a table. */
export function translate(message: Message | string, language: Language, bangla: Templates, latin = false): string {
  if (typeof message === "string") return language === "bn" ? (bangla[message] ?? message) : message;
  const { values } = message;
  const english = language === "en" && message.one !== undefined && values.n === 1 ? message.one : message.template;
  const template = language === "bn" ? (bangla[english] ?? english) : english;
  if (Object.keys(values).length === 0) return template;
  const fill = (part: string, digits: Language) =>
    part.replace(FIELD, (whole, name?: string, conversion?: string, spec = "") => {
      if (name === undefined) return whole.charAt(0);
      const value = values[name] ?? null;
      return conversion === "r" && typeof value === "string" ? quoted(value) : shown(value, spec);
      function shown(each: Value, how: string): string {
        if (Array.isArray(each)) return each.map((one) => shown(one, how)).join(", ");
        if (typeof each === "number") return format(each, how, digits);
        if (typeof each === "boolean") return each ? "True" : "False";
        if (each === null) return "None";
        if (typeof each === "string") return each;
        if ("template" in each) return translate(each, language, bangla, latin);
        if ("option" in each) return each.value === null ? each.option : `${each.option}=${python(each.value)}`;
        return amount(each, language, latin ? "en" : language);
      }
    });
  if (language === "en") return fill(template, "en");
  const sentences = template.match(SENTENCE) ?? [];
  return sentences.map((part) => fill(part, latin || FORMULA.test(part) ? "en" : "bn")).join("");
}

/** Format a number by a Python format specification: sign, grouping, precision and one of d, e, f, g, %. */
export function format(value: number, spec: string, digits: Language): string {
  const [, sign = "", comma = "", precision, kind = ""] = /^([+]?)(,?)(?:\.(\d+))?([defg%]?)$/.exec(spec) ?? [];
  const lead = sign !== "" && value >= 0 ? "+" : "";
  if (!Number.isFinite(value)) return lead + (Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf");
  if (kind === "%") return `${lead}${decimal(100 * value, Number(precision ?? 6), comma !== "", digits)}%`;
  if (kind === "f") return lead + decimal(value, Number(precision ?? 6), comma !== "", digits);
  if (kind === "e") return lead + inDigits(scientific(value, Number(precision ?? 6)), digits);
  if (kind === "g" || precision !== undefined) return lead + general(value, Math.max(1, Number(precision ?? 6)), comma !== "", digits);
  if (Number.isInteger(value)) return lead + decimal(value, 0, comma !== "", digits);
  return lead + decimal(value, String(value).split(".")[1]?.length ?? 0, comma !== "", digits);
}

/** Convert a formatted number to a language's digits and grouping. */
export function numberText(text: string, language: Language): string {
  return inDigits(language === "en" ? text : text.replace(/\d{1,3}(?:,\d{3})+/g, (found) => Number(found.replaceAll(",", "")).toLocaleString("en-IN")), language);
}

function decimal(value: number, places: number, grouped: boolean, digits: Language): string {
  const rules = { minimumFractionDigits: places, maximumFractionDigits: places, useGrouping: grouped, roundingMode: "halfEven" } as const;
  return new Intl.NumberFormat(digits === "bn" ? "bn-BD-u-nu-beng" : "en", rules).format(value);
}

function general(value: number, precision: number, grouped: boolean, digits: Language): string {
  const exponent = value === 0 ? 0 : Number(value.toExponential(precision - 1).split("e")[1]);
  if (exponent < -4 || exponent >= precision) return inDigits(scientific(value, precision - 1).replace(/\.?0*(?=e)/, (zeros) => (zeros.startsWith(".") ? "" : zeros)), digits);
  const places = String(Number(value.toPrecision(precision))).split(".")[1]?.length ?? 0;
  return decimal(Number(value.toPrecision(precision)), places, grouped, digits);
}

function scientific(value: number, places: number): string {
  const [number = "", exponent = "+0"] = value.toExponential(places).split("e");
  return `${number}e${exponent[0] ?? "+"}${exponent.slice(1).padStart(2, "0")}`;
}

function amount(each: Amount, language: Language, digits: Language): string {
  if ("size" in each) {
    const found = SIZES.find(([unit]) => Math.abs(each.size) >= 0.9995 * unit);
    if (found !== undefined) return `${short(each.size / found[0], 100, digits)} ${found[1]}`;
    return withUnit(decimal(each.size, 0, false, "en"), "byte", "বাইট", language, digits);
  }
  if ("duration" in each) {
    const [name, bangla, seconds] = TIMES.find(([, , , below]) => each.duration < below) ?? TIMES[3]!;
    const tiny = each.duration > 0 && each.duration < 0.1;
    return withUnit(tiny ? format(each.duration, ".1g", "en") : short(each.duration / seconds, 10, "en"), name, bangla, language, digits);
  }
  for (const [unit, name] of COUNTS[language]) {
    if (each.count >= unit) return `${format(each.count / unit, each.count < 1000 * unit ? ".3g" : ",.0f", digits)} ${name}`;
  }
  return format(each.count, ",.0f", digits);
}

/** One decimal if it is not zero. */
function short(value: number, wholeFrom: number, digits: Language): string {
  const one = decimal(value, 1, false, "en");
  if (value >= wholeFrom || one.endsWith(".0")) return decimal(value >= wholeFrom ? value : Number(one), 0, value >= wholeFrom, digits);
  return inDigits(one, digits);
}

function withUnit(text: string, unit: string, bangla: string, language: Language, digits: Language): string {
  return language === "en" ? `${text} ${unit}${text === "1" ? "" : "s"}` : `${numberText(text, digits)} ${bangla}`;
}

const inDigits = (text: string, digits: Language): string => (digits === "en" ? text : text.replace(/\d/g, (digit) => "০১২৩৪৫৬৭৮৯"[Number(digit)] ?? digit));
const quoted = (text: string): string => (text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text.replaceAll("'", "\\'")}'`);
const python = (value: string | number | boolean): string => (typeof value === "string" ? quoted(value) : typeof value === "boolean" ? (value ? "True" : "False") : String(value));
