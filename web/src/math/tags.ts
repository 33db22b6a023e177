/** Tags: words that trainings are found by, typed in one line with commas between them. */

/** The tags of a line; what is empty or said twice is left out. */
export function tagsIn(typed: string): string[] {
  const tags = typed.split(/[,;،\n]/).map((each) => each.trim().replace(/\s+/g, " ").normalize("NFC"));
  return [...new Set(tags)].filter((each) => each !== "");
}

export function typedTags(tags: readonly string[]): string {
  return tags.join(", ");
}

/** Every tag of some trainings, the most used first, and in the order of their first use. */
export function allTags(rows: readonly { tags: readonly string[] }[]): string[] {
  const counts = new Map<string, number>();
  for (const row of rows) for (const tag of row.tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]).map(([tag]) => tag);
}
