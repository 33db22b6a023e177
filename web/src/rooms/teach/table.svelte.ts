/** An uploaded table: stored on the server, and parsed by it as for training. */
import { asError, get, post, type ApiError, type Schemas } from "@/api/client";
import { discardUploads, type FileType, fileTypeOf, textOf, upload } from "@/api/files";

export type Use = "classify" | "translate";

export class Table {
  name = $state("");
  file = $state("");
  summary: Schemas["TableResponse"] | null = $state.raw(null);
  wrong: ApiError | null = $state.raw(null);
  busy = $state(false);
  /** Whether rows that cannot be read are skipped. */
  skips = $state(false);
  /** The uploaded file, until a job uses it. */
  #loose: string[] = [];

  constructor(readonly use: Use) {}

  get ready(): boolean {
    if (this.summary === null || this.busy) return false;
    return this.enough && (this.summary.broken === 0 || this.skips);
  }

  /** Whether there are at least two classes, if the table has classes. */
  get enough(): boolean {
    return this.use !== "classify" || Object.keys(this.summary?.classes ?? {}).length > 1;
  }

  async take(file: File): Promise<void> {
    await this.#upload(() => textOf(file), fileTypeOf(file.name, "csv"), file.name);
  }

  async example(name: string): Promise<void> {
    this.busy = true;
    try {
      const found = await get("/api/examples/{use}", { use: this.use });
      await this.#upload(() => Promise.resolve(found.text), found.file_type, name);
    } catch (error) {
      this.wrong = asError(error);
    } finally {
      this.busy = false;
    }
  }

  async #upload(text: () => Promise<string>, file_type: FileType, name: string): Promise<void> {
    [this.busy, this.wrong, this.summary, this.skips, this.name] = [true, null, null, false, name];
    this.#discard();
    try {
      this.file = await upload({ text: await text(), file_type, name });
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
      this.summary = await post("/api/table", { file: this.file, use: this.use, fields });
      this.wrong = null;
    } catch (error) {
      this.wrong = asError(error);
    }
  }

  /** Called when a job has started, which keeps needing the file. */
  begun(): void {
    this.#loose = [];
  }

  #discard(): void {
    discardUploads(...this.#loose);
    this.#loose = [];
  }

  forget(): void {
    this.#discard();
    [this.summary, this.wrong, this.file, this.name] = [null, null, "", ""];
  }
}
