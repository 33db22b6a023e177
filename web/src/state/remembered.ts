/** What a browser remembers for its reader. Some keep nothing, or not for files: then it holds as long as the page is open. */

type Store = "localStorage" | "sessionStorage";

export function recall(name: string, store: Store = "localStorage"): string | null {
  try {
    return globalThis[store].getItem(name);
  } catch {
    return null;
  }
}

/** The parts of an object that were remembered as JSON; none where something else has its name. */
export function recallParts<T extends object>(name: string): Partial<T> {
  try {
    return { ...(JSON.parse(recall(name) ?? "{}") as Partial<T>) };
  } catch {
    return {};
  }
}

export function remember(name: string, value: string, store: Store = "localStorage"): void {
  try {
    globalThis[store].setItem(name, value);
  } catch {
    // as said above
  }
}
