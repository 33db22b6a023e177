/** Formats a document's texts in the language of the page. */
import { getContext, setContext } from "svelte";
import { preferences } from "@/state/preferences.svelte";
import { type Templates, translate } from "@/words/message";
import type { Text } from "./data";

export interface Reader {
  /** One or several sentences. A plain string is data and stays unchanged. */
  read: (text: Text | readonly Text[]) => string;
  /** The same in a table or on an axis, where digits are Latin. */
  cell: (text: Text) => string;
}
const KEY = Symbol("reader");

export function reading(bangla: Templates): Reader {
  const one = (text: Text, latin: boolean) => (typeof text === "string" ? text : translate(text, preferences.language, bangla, latin));
  const read = (text: Text | readonly Text[]) => [text].flat().map((each) => one(each, false)).join(" ");
  return setContext<Reader>(KEY, { read, cell: (text) => one(text, true) });
}

export const reader = (): Reader => getContext<Reader>(KEY);
