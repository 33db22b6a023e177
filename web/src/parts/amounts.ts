/** Bytes and seconds in the language of the page. */
import words from "@words/design.json";
import { figure, phrases } from "@/words/index.svelte";

const say = phrases(words);

export const gigabytes = (bytes: number): string => figure(bytes / 1e9, 2);

export function memory(bytes: number): string {
  return bytes < 1e8 ? `${figure(bytes / 1e6, bytes < 1e7 ? 1 : 0)} MB` : `${gigabytes(bytes)} GB`;
}

export function time(value: number): string {
  if (value < 90) return say("time.seconds", { seconds: { value, decimals: value < 10 ? 1 : 0 } });
  if (value < 5400) return say("time.minutes", { minutes: Math.round(value / 60) });
  if (value < 172_800) return say("time.hours", { hours: Math.floor(value / 3600), minutes: Math.round((value % 3600) / 60) });
  return say("time.days", { days: Math.round(value / 86_400) });
}

/** The amounts of some parts by name. */
export function parts(from: Record<string, unknown>, names: readonly string[]): { key: string; value: number }[] {
  return names.map((key) => ({ key, value: Number(from[key] ?? 0) }));
}
