/** Names of hook points in a model, and their paths in the address: `blocks.3.attention/scores`. */

/** The hook point that has the name of the part itself: the output of the part. */
export const ADDED = "added";
const SITE = /^((?:blocks|encoder|decoder)\.\d+)(?:\.(attention|cross|feedforward))?(?:\.(.+))?$/;

export interface Named {
  layer: string | null;
  part: string | null;
  /** The last component of the name; `added` for the output of a part. */
  own: string;
}

export function named(site: string): Named {
  const found = SITE.exec(site);
  if (found === null) return { layer: null, part: null, own: site };
  const [, layer = "", part, own] = found;
  return { layer, part: part ?? null, own: own ?? (part === undefined ? "" : ADDED) };
}

/** The path of a matrix. */
export function pathOf(site: string): string[] {
  const { layer, part, own } = named(site);
  if (layer === null) return [site];
  return [part === null ? layer : `${layer}.${part}`, own];
}

/** The level of a path: the whole model, a layer, a part of it, or one matrix. */
export type Level = { level: "model" } | { level: "layer"; layer: string } | { level: "part"; layer: string; part: string } | { level: "matrix"; site: string };

export function levelOf(path: readonly string[]): Level {
  const [first, second] = path;
  if (first === undefined || first === "") return { level: "model" };
  const { layer, part, own } = named(first);
  if (second !== undefined) return { level: "matrix", site: second === ADDED ? first : `${first}.${second}` };
  if (layer !== null && part !== null && own === ADDED) return { level: "part", layer, part };
  if (layer !== null && own === "") return { level: "layer", layer };
  return { level: "matrix", site: first };
}

/** The path of the level above. */
export function above(path: readonly string[]): string[] {
  const here = levelOf(path);
  if (here.level === "matrix") {
    const { layer, part } = named(here.site);
    return layer === null ? [] : [part === null ? layer : `${layer}.${part}`];
  }
  return here.level === "part" ? [here.layer] : [];
}

/** The same path in another layer. */
export function inLayer(path: readonly string[], layer: string): string[] {
  return path.map((each, i) => (i === 0 ? each.replace(/^(?:blocks|encoder|decoder)\.\d+/, layer) : each));
}

/** The catalogue key of a matrix's name. */
export function wordOf(site: string): string {
  const { part, own } = named(site);
  if (own === "added" && part !== null) return `${part}.added`;
  return own.replace(/\.(source|target)$/, "");
}
