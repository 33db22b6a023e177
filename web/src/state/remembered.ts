/** Values stored in the browser. Without storage, or for files, they are kept only as long as the page is open. */

type Store = "localStorage" | "sessionStorage";

export function recall(name: string, store: Store = "localStorage"): string | null {
  try {
    return globalThis[store].getItem(name);
  } catch {
    return null;
  }
}

/** The parts of an object that was stored as JSON; none if the key holds something else. */
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
    // there is no storage; see above
  }
}
