/** Sentences that came in English, known again by their form: the catalogue's English, with something in each `{place}`. */
import type { Catalogue } from "./index.svelte";

export interface Form<Key> {
  key: Key;
  names: string[];
  form: RegExp;
}
export interface Recognized<Key> {
  key: Key;
  /** What stood in the places, by name. */
  found: Record<string, string>;
}

const plain = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The forms of a catalogue's sentences. */
export function formsOf<C extends Catalogue>(words: C, keys = Object.keys(words) as (keyof C & string)[]): Form<keyof C & string>[] {
  return keys.map((key) => {
    const en = words[key]?.en ?? "";
    // What is filled in at the very end may be nothing, such as a name that is suggested.
    const form = en.split(/\{\w+\}/).map(plain).join("(.*?)");
    return { key, names: [...en.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ""), form: new RegExp(`^${form}$`, "s") };
  });
}

/** Which form a sentence has; null where none. */
export function recognize<Key>(forms: readonly Form<Key>[], sentence: string): Recognized<Key> | null {
  for (const { key, names, form } of forms) {
    const found = form.exec(sentence.trim());
    if (found !== null) return { key, found: Object.fromEntries(names.map((name, i) => [name, found[i + 1] ?? ""])) };
  }
  return null;
}
