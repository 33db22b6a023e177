/** An uploaded table: stored on the server, and parsed by it as for training. */
import { asError, get, post, type ApiError, type Schemas } from "@/api/client";
import { bring, type Ending, endingOf, letGo, textOf } from "@/api/files";

export type Use = "classify" | "translate";

export class Table {
  name = $state("");
  file = $state("");
  told: Schemas["TableTold"] | null = $state.raw(null);
  wrong: ApiError | null = $state.raw(null);
  busy = $state(false);
  /** Whether rows that cannot be read are skipped. */
  skips = $state(false);
  /** The uploaded file, until a job uses it. */
  #loose: string[] = [];

  constructor(readonly use: Use) {}

  get ready(): boolean {
    if (this.told === null || this.busy) return false;
    return this.enough && (this.told.broken === 0 || this.skips);
  }

  /** Whether there are at least two classes, if the table has classes. */
  get enough(): boolean {
    return this.use !== "classify" || Object.keys(this.told?.classes ?? {}).length > 1;
  }

  async take(file: File): Promise<void> {
    await this.#bring(() => textOf(file), endingOf(file.name, "csv"), file.name);
  }

  async example(name: string): Promise<void> {
    this.busy = true;
    try {
      const found = await get("/api/examples/{use}", { use: this.use });
      await this.#bring(() => Promise.resolve(found.text), found.ending, name);
    } catch (error) {
      this.wrong = asError(error);
    } finally {
      this.busy = false;
    }
  }

  async #bring(text: () => Promise<string>, ending: Ending, name: string): Promise<void> {
    [this.busy, this.wrong, this.told, this.skips, this.name] = [true, null, null, false, name];
    this.#letGo();
    try {
      this.file = await bring({ text: await text(), ending, name });
      this.#loose = [this.file];
      await this.read(null);
    } catch (error) {
      this.wrong = asError(error);
    } finally {
      this.busy = false;
    }
  }

  /** Read it with the selected columns. */
  async read(fields: [string, string] | null): Promise<void> {
    try {
      this.told = await post("/api/table", { file: this.file, use: this.use, fields });
      this.wrong = null;
    } catch (error) {
      this.wrong = asError(error);
    }
  }

  /** Called when a job has started, which keeps needing the file. */
  begun(): void {
    this.#loose = [];
  }

  #letGo(): void {
    letGo(...this.#loose);
    this.#loose = [];
  }

  forget(): void {
    this.#letGo();
    [this.told, this.wrong, this.file, this.name] = [null, null, "", ""];
  }
}
