/** The models of the server: their names at once, what each one is when it is asked for. */
import { get, type Schemas } from "@/api/client";
import { route } from "./route.svelte";

export type About = Schemas["AboutServed"];

/** By name, and nothing else: a plain object would know a "constructor" that nobody put there, and an address may ask for it. */
const byName = <T>(...found: Record<string, T>[]): Record<string, T> => Object.assign(Object.create(null) as Record<string, T>, ...found);

class Models {
  names: string[] = $state.raw([]);
  known: Record<string, About> = $state.raw(byName());
  #titles: Record<string, string> = $state.raw(byName());

  /** Read the names anew; a training that ended has made another. */
  async refresh(): Promise<void> {
    const found = (await get("/v1/models")) as { data: { id: string }[] };
    this.names = found.data.map((each) => each.id);
    const runs = await get("/api/runs").catch(() => []); // a model can be written with all the same
    this.#titles = byName(Object.fromEntries(runs.map((run) => [run.name, run.title])));
  }

  /** What people call a model: a training has a name of its own beside its number. */
  title(name: string): string {
    return this.#titles[name] ?? name;
  }

  /** What a model is; remembered. */
  async about(name: string): Promise<About> {
    const known = this.known[name];
    if (known !== undefined) return known;
    const found = await get("/api/models/{name}", { name });
    this.known = byName(this.known, { [name]: found });
    return found;
  }

  /** The model at hand: the one the address names, else the first. */
  get chosen(): string {
    return route.query.m ?? this.names[0] ?? "";
  }

  /** The one beside it, if any. */
  get beside(): string {
    return route.query.b ?? "";
  }
}

export const models = new Models();
