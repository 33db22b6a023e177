/** What the server says, in the reader's language: a sentence is known again by its form. One that is not stays as it came. */
import words from "@words/told.json";
import { models } from "@/state/models.svelte";
import { preferences } from "@/state/preferences.svelte";
import { fill, type Filling } from "./index.svelte";
import { banglaDigits } from "./numbers";

interface Form {
  key: keyof typeof words;
  names: string[];
  form: RegExp;
}
const plain = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const FORMS: Form[] = (Object.keys(words) as (keyof typeof words)[])
  .filter((key) => key !== "english")
  .map((key) => {
    const { en } = words[key];
    // What is filled in at the very end may be nothing, such as a name that is suggested.
    const form = en.split(/\{\w+\}/).map(plain).join("(.*?)");
    return { key, names: [...en.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ""), form: new RegExp(`^${form}$`, "s") };
  });

/** A sentence of the server's; null where the language has none for it. */
export function known(sentence: string): string | null {
  for (const { key, names, form } of FORMS) {
    const found = form.exec(sentence.trim());
    if (found === null) continue;
    const filling: Filling = Object.fromEntries(names.map((name, i) => [name, filled(name, found[i + 1] ?? "")]));
    return fill(words[key][preferences.language], filling, preferences.language);
  }
  return null;
}

/** The same, and where it is not known, as it came. */
export function told(sentence: string): string {
  return known(sentence) ?? sentence;
}

/** The same as a sentence of its own: one in English is announced to who reads another language. */
export function toldAloud(sentence: string): string {
  if (sentence === "") return "";
  return known(sentence) ?? (preferences.language === "en" ? sentence : fill(words.english.bn, { said: sentence }, "bn"));
}

/** Why a command failed: the last of what it said. */
export function lastWord(said: string): string {
  return toldAloud((said.trim().split("\n").at(-1) ?? "").replace(/^kotha: /, ""));
}

/** Models by the names that people gave them; numbers as numbers, so that each language writes its own. */
function filled(name: string, text: string): string | number {
  if (["names", "one", "other", "model"].includes(name)) return text.split(", ").map((each) => models.title(each)).join(", ");
  if (/^\d+%$/.test(text)) return preferences.language === "bn" ? banglaDigits(text) : text;
  const value = Number(text.replaceAll(",", ""));
  return text !== "" && Number.isFinite(value) && !["x", "y"].includes(name) ? value : text;
}
