/** The state of the inspection: one forward pass of a model, windows of its matrices, and the reader's position in it. */
import { post, request, type Schemas } from "@/api/client";
import { levelOf, named, pathOf, type Level } from "@/math/sites";
import { placeWithin, type Tile } from "@/math/tiles";
import { PendingRequest } from "@/state/pending.svelte";
import { navigate, route, updateQuery } from "@/state/route.svelte";

export type Pass = Schemas["PassResponse"];
export type Site = Schemas["PassSite"];
export type Column = Schemas["ResidualColumn"];
export type Recipe = Schemas["RecipeResponse"];
export type Question = Schemas["AblationRequest"];
export type Piece = Schemas["Piece"];

export const MEASURES = ["guess", "length", "change", "entropy", "loss"] as const;
export type Measure = (typeof MEASURES)[number];

/** A forward pass, with the request for it. */
export interface Read {
  question: Question;
  pass: Pass;
  sites: Map<string, Site>;
}

// Cache of matrices; the least recently used are removed first.
const MOST_BYTES = 64 << 20;

class Tiles {
  #kept = new Map<string, Promise<Tile>>();
  #sizes = new Map<string, number>();

  get(question: Question, site: string, head: number | null, rows: [number, number] | null): Promise<Tile> {
    const body = { ...question, site, head, row: rows?.[0] ?? 0, rows: rows?.[1] ?? null, column: 0 };
    const key = JSON.stringify(body);
    const known = this.#kept.get(key);
    if (known !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, known);
      return known;
    }
    const asked = fetchTile(body).then((tile) => {
      this.#sizes.set(key, tile.values.byteLength);
      this.#tidy();
      return tile;
    });
    asked.catch(() => this.#kept.delete(key));
    this.#kept.set(key, asked);
    return asked;
  }

  #tidy(): void {
    let all = [...this.#sizes.values()].reduce((sum, each) => sum + each, 0);
    for (const key of this.#kept.keys()) {
      if (all <= MOST_BYTES) return;
      all -= this.#sizes.get(key) ?? 0;
      this.#sizes.delete(key);
      this.#kept.delete(key);
    }
  }
}

async function fetchTile(body: Schemas["ValuesRequest"]): Promise<Tile> {
  const answer = await request("/api/inside/values", { method: "POST", body: JSON.stringify(body) });
  const [rows, columns] = [Number(answer.headers.get("x-rows")), Number(answer.headers.get("x-columns"))];
  return { rows, columns, values: new Float32Array(await answer.arrayBuffer()) };
}

const tiles = new Tiles();

class Looking {
  asked = new PendingRequest<Read>();
  /** The same forward pass with all heads, if some are silenced. */
  whole = new PendingRequest<Read>();
  recipe = new PendingRequest<Recipe>();
  /** The image that a ViT reads, as PNG in base64; too long for an address. */
  image = $state.raw("");

  get read(): Read | null {
    return this.asked.value;
  }

  get level(): Level {
    return levelOf(route.path);
  }

  get head(): number {
    return Number(route.query.h ?? 0) || 0;
  }

  /** Row and column from 0, or -1 for none; a larger matrix may have left an address outside the current one. */
  get row(): number {
    return placeWithin(route.query.r, this.#shape?.[0]);
  }

  get column(): number {
    return placeWithin(route.query.c, this.#shape?.[1]);
  }

  get #shape(): readonly number[] | undefined {
    return this.level.level === "matrix" ? this.read?.sites.get(this.level.site)?.shape : undefined;
  }

  get measure(): Measure {
    return MEASURES.find((each) => each === route.query.show) ?? "guess";
  }

  get silenced(): string[] {
    return (route.query.s ?? "").split(",").filter(Boolean);
  }

  async ask(question: Question): Promise<void> {
    const read = (each: Question) => async (signal: AbortSignal): Promise<Read> => {
      const pass = await post("/api/inside/pass", each, signal);
      return { question: each, pass, sites: new Map(pass.sites.map((site) => [site.site, site])) };
    };
    await this.asked.ask(read(question));
    if ((question.silenced ?? []).length > 0) void this.whole.ask(read({ ...question, silenced: [] }));
    else this.whole.forget();
  }

  tile(site: string, head: number | null = null, rows: [number, number] | null = null): Promise<Tile> {
    const read = this.read;
    if (read === null) return Promise.reject(new Error("nothing was read yet"));
    const known = read.sites.get(site);
    return tiles.get(read.question, site, (known?.heads.length ?? 0) > 0 ? (head ?? this.headOf(known)) : null, rows);
  }

  /** The current head, if the matrix has one. */
  headOf(site: Site | undefined): number {
    if (site === undefined || site.heads.length === 0) return 0;
    return site.heads.includes(this.head) ? this.head : (site.heads[0] ?? 0);
  }

  /** The layers of the stack that contains a layer, or of the stack that predicts. */
  layers(like: string | null = null): string[] {
    const found = (this.read?.pass.columns ?? []).flatMap((each) => (each.layer === null ? [] : [each.layer]));
    if (like === null) return found;
    const stack = like.split(".")[0];
    return found.filter((each) => each.split(".")[0] === stack);
  }

  /** The line of pieces for the rows of the current matrix. */
  line(layer: string): string {
    const columns = this.read?.pass.columns ?? [];
    return columns.find((each) => each.layer === layer)?.line ?? columns[0]?.line ?? "tokens";
  }

  /** The line in which a cell of the grid was selected; by default the last one, which is predicted. */
  get chosenLine(): string {
    return route.query.w || (Object.keys(this.read?.pass.lines ?? {}).at(-1) ?? "tokens");
  }

  pieces(line: string): Piece[] {
    return this.read?.pass.lines[line] ?? [];
  }
}

export const looking = new Looking();

/** Open a matrix, optionally at a cell. */
export function openSite(site: string, at: { row?: number | null; column?: number | null; head?: number | null } = {}): void {
  const query = { ...route.query };
  if (at.row != null) query.r = String(at.row + 1);
  if (at.column != null) query.c = String(at.column + 1);
  if (at.head != null) query.h = String(at.head);
  navigate({ path: pathOf(site), query });
}

/** Move to a cell of the current matrix. */
export function moveTo(row: number, column: number): void {
  updateQuery({ r: String(row + 1), c: String(column + 1) });
}

/** The matrices of a layer or a part in the order of the arithmetic; for a whole layer without intermediate steps. */
export function sitesOf(read: Read, layer: string, part: string | null): Site[] {
  const inner = /^(query|key|value|query_norm|key_norm|joined)$/;
  return read.pass.sites.filter((each) => {
    const at = named(each.site);
    if (at.layer !== layer || each.operation == null) return false;
    if (part !== null) return at.part === part;
    return !inner.test(at.own);
  });
}
