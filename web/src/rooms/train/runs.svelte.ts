/** The training runs of the server: one line for each, and the curves of some, which are updated while they are shown. */
import { get, named, request, type Schemas } from "@/api/client";

export type Row = Schemas["RunRow"];
export type Run = Schemas["RunResponse"];

const EVERY = 2000;

export class Runs {
  rows: Row[] = $state.raw([]);
  curves: Record<string, Run> = $state.raw({});
  listed = $state(false);
  #timer: ReturnType<typeof setInterval> | undefined;
  #looking = false;
  #lists = 0;

  /** Poll now, and repeatedly while a run is in progress. */
  watch(shown: () => readonly string[]): () => void {
    void this.look(shown());
    this.#timer = setInterval(() => {
      const names = shown();
      if (!this.listed || this.rows.some((row) => row.state === "running") || names.some((name) => this.curves[name] === undefined)) void this.look(names);
    }, EVERY);
    return () => clearInterval(this.#timer);
  }

  async look(shown: readonly string[]): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      await this.list();
      for (const name of shown) await this.#grow(name);
    } catch {
      // the page reports that the server does not respond; the list is kept
    } finally {
      this.#looking = false;
    }
  }

  /** Reload the list; responses that arrive out of order are ignored. */
  async list(): Promise<void> {
    const mine = (this.#lists += 1);
    const found = await get("/api/runs");
    if (mine === this.#lists) this.rows = found;
    this.listed = true;
  }

  forget(name: string): void {
    this.rows = this.rows.filter((row) => row.name !== name);
    const { [name]: _, ...rest } = this.curves;
    this.curves = rest;
  }

  /** Fetch new points of a curve; if its steps went back (the run resumed from an earlier checkpoint), reload it. */
  async #grow(name: string): Promise<void> {
    const known = this.curves[name];
    const row = this.rows.find((each) => each.name === name);
    if (row === undefined || (known !== undefined && known.state === row.state && row.state !== "running")) return;
    const resumed = known !== undefined && known.state !== "running" && row.state === "running";
    const last = known === undefined || resumed ? -1 : Math.max(-1, known.points.at(-1)?.step ?? -1);
    const path = `${named("/api/runs/{name}", { name })}${last >= 0 ? `?after=${last - 1}` : ""}`;
    const found = (await (await request(path)).json()) as Run;
    const before = last < 0 ? undefined : known;
    this.curves = {
      ...this.curves,
      [name]: {
        ...found,
        points: [...(before?.points.filter((each) => each.step < last) ?? []), ...found.points],
        evaluations: [...(before?.evaluations.filter((each) => each.step < last) ?? []), ...found.evaluations],
      },
    };
  }
}
