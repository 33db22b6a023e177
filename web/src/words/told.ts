/** What the server says, in the reader's language: a sentence is known again by its form. One that is not stays as it came. */
import words from "@words/told.json";
import { models } from "@/state/models.svelte";
import { preferences } from "@/state/preferences.svelte";
import { formsOf, recognize } from "./forms";
import { fill, type Filling } from "./index.svelte";
import { banglaDigits } from "./numbers";

const FORMS = formsOf(words, (Object.keys(words) as (keyof typeof words)[]).filter((key) => key !== "english"));

/** A sentence of the server's; null where the language has none for it. */
export function known(sentence: string): string | null {
  const form = recognize(FORMS, sentence);
  if (form === null) return null;
  const filling: Filling = Object.fromEntries(Object.entries(form.found).map(([name, text]) => [name, filled(name, text)]));
  return fill(words[form.key][preferences.language], filling, preferences.language);
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
