/** The models of the server: their names at once, their properties on request. */
import { get, type Schemas } from "@/api/client";
import { route } from "./route.svelte";

export type About = Schemas["AboutServed"];

/** Models by name. A plain object would also have inherited keys such as "constructor", which an address may contain. */
const byName = <T>(...found: Record<string, T>[]): Record<string, T> => Object.assign(Object.create(null) as Record<string, T>, ...found);

class Models {
  names: string[] = $state.raw([]);
  known: Record<string, About> = $state.raw(byName());
  #titles: Record<string, string> = $state.raw(byName());

  /** Reload the names, because a finished training run has added a model. */
  async refresh(): Promise<void> {
    const found = (await get("/v1/models")) as { data: { id: string }[] };
    this.names = found.data.map((each) => each.id);
    const runs = await get("/api/runs").catch(() => []); // text can be generated without this list
    this.#titles = byName(Object.fromEntries(runs.map((run) => [run.name, run.title])));
  }

  /** The display name of a model; a training run has a name in addition to its id. */
  title(name: string): string {
    return this.#titles[name] ?? name;
  }

  /** The properties of a model; cached. */
  async about(name: string): Promise<About> {
    const known = this.known[name];
    if (known !== undefined) return known;
    const found = await get("/api/models/{name}", { name });
    this.known = byName(this.known, { [name]: found });
    return found;
  }

  /** The current model: the one in the address, otherwise the first. */
  get chosen(): string {
    return route.query.m ?? this.names[0] ?? "";
  }

  /** The second model, if any. */
  get beside(): string {
    return route.query.b ?? "";
  }
}

export const models = new Models();
