/** The server's messages in the reader's language, from an English template, its values, and Python's message catalogues. */
import words from "@words/messages.json";
import { models } from "@/state/models.svelte";
import { preferences } from "@/state/preferences.svelte";
import { fill } from "./index.svelte";
import { translate, type Message, type Templates, type Value } from "./message";

let BANGLA: Templates = {};

/** Set the Bangla templates: all of them in the studio, and only the necessary ones in a single-file page. */
export function setTemplates(templates: Templates): void {
  BANGLA = templates;
}

/** A message in JSON; its values are those that `to_json` writes. */
export interface ServerMessage {
  template: string;
  values: Record<string, unknown>;
  one?: string | null;
}

/** The content of a single-file page: its kind, its data, its title and remarks, and the command that made it. */
export type Page<Kinds> = { [K in keyof Kinds]: { kind: K; data: Kinds[K]; title: ServerMessage | string; remarks: (ServerMessage | string)[]; made_by: string } }[keyof Kinds];

/** Translate a message of the server; a plain string is unchanged. */
export function localize(message: ServerMessage | string): string {
  return translate(withModelTitles(message), preferences.language, BANGLA);
}

/** Translate a message that stands alone as a sentence; a message without a translation is introduced as English. */
export function localizeSentence(message: ServerMessage | string): string {
  const template = typeof message === "string" ? message : message.template;
  const text = localize(message);
  const inEnglish = /[a-z]/i.test(template.replace(/\{[^}]*\}/g, "")) && !/[\u0980-\u09ff]/.test(template);
  if (preferences.language === "en" || template in BANGLA || !inEnglish) return text;
  return fill(words.english.bn, { said: text }, "bn");
}

/** Replace models with their display names. */
function withModelTitles(message: ServerMessage | string): Message | string {
  if (typeof message === "string") return message;
  const { template, one } = message;
  const values = Object.fromEntries(Object.entries(message.values).map(([name, value]) => [name, named(value as Value)]));
  return { template, values, ...(one == null ? {} : { one }) };
}

function named(value: Value): Value {
  if (typeof value === "string") return models.title(value);
  if (Array.isArray(value)) return value.map(named);
  return value !== null && typeof value === "object" && "template" in value ? (withModelTitles(value) as Message) : value;
}
