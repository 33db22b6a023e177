/** One text that the model generates; it is updated once per frame, and Stop keeps it. */
import type { Order, ReadPiece, GeneratedToken } from "./protocol";
import type { Source } from "./source";

export interface Sheet {
  typed: string;
  prompt: ReadPiece[];
  tokens: GeneratedToken[];
  /** Number of characters that are final, because no following sign can change them. */
  certain: number;
  ended: boolean;
}

export class Desk {
  sheet: Sheet | null = $state.raw(null);
  /** The text before the last replacement. */
  before: Sheet | null = $state.raw(null);
  writing = $state(false);
  perSecond = $state(0);
  error = $state("");

  constructor(private readonly source: Source) {}

  async begin(typed: string, order: Order): Promise<void> {
    const [read] = await this.source.read([typed]);
    await this.write({ typed, prompt: read?.pieces ?? [], tokens: [], certain: 0, ended: false }, order);
  }

  async goOn(order: Order): Promise<void> {
    if (this.sheet !== null) await this.write({ ...this.sheet, ended: false }, order);
  }

  /** Continue with another token at a position; the replaced text can be restored. */
  async fork(place: number, chosen: GeneratedToken, order: Order): Promise<void> {
    const here = this.sheet;
    if (here === null) return;
    this.before = here;
    await this.write({ ...here, tokens: [...here.tokens.slice(0, place), chosen], ended: false }, order);
  }

  back(): void {
    this.stop();
    this.sheet = this.before;
    this.before = null;
  }

  stop(): void {
    this.source.stop();
  }

  private async write(sheet: Sheet, order: Order): Promise<void> {
    if (this.writing) return;
    [this.writing, this.error, this.sheet] = [true, "", sheet];
    let tokens = [...sheet.tokens];
    let certain = sheet.certain;
    let frame = 0;
    const show = (ended: boolean) => {
      frame = 0;
      this.sheet = { ...sheet, tokens: [...tokens], certain, ended };
    };
    try {
      const done = await this.source.write(idsOf(sheet), sheet.prompt.length, order, {
        kept: (adds) => (tokens = tokens.map((token, place) => ({ ...token, adds: adds[place] ?? "" }))),
        token: (token, letters) => {
          tokens.push(token);
          certain = letters;
          if (frame === 0) frame = requestAnimationFrame(() => show(false));
        },
      });
      this.perSecond = done.perSecond;
      cancelAnimationFrame(frame);
      // the stream has ended, so the last akshara is complete
      certain = Infinity;
      show(done.stopped === "end");
    } catch (error) {
      this.error = error instanceof Error ? error.message : String(error);
    } finally {
      this.writing = false;
    }
  }
}

/** The ids of a text, up to a position among the generated tokens. */
export function idsOf(sheet: Sheet, place = sheet.tokens.length): number[] {
  return [...sheet.prompt, ...sheet.tokens.slice(0, place)].map((piece) => piece.id);
}

export function textOf(sheet: Sheet): string {
  return sheet.typed + sheet.tokens.map((token) => token.adds).join("");
}
