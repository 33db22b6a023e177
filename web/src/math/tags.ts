/** Tags of training runs, typed in one line and separated by commas. */

/** The tags of a line, without empty ones and duplicates. */
export function tagsIn(typed: string): string[] {
  const tags = typed.split(/[,;،\n]/).map((each) => each.trim().replace(/\s+/g, " ").normalize("NFC"));
  return [...new Set(tags)].filter((each) => each !== "");
}

export function typedTags(tags: readonly string[]): string {
  return tags.join(", ");
}

/** All tags of some runs, the most frequent first; ties in order of first use. */
export function allTags(rows: readonly { tags: readonly string[] }[]): string[] {
  const counts = new Map<string, number>();
  for (const row of rows) for (const tag of row.tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]).map(([tag]) => tag);
}
