/** One generated text with all its branches; it is updated once per frame, and Stop keeps it. */
import { type ApiError, asError, isAbort, post, refused, request, type Schemas } from "@/api/client";
import { events } from "@/api/stream";
import type { Sampling } from "@/math/sampling";
import { same } from "./settings";

export type Piece = Schemas["SpelledToken"];
export type WrittenPiece = Schemas["GeneratedTokenEvent"];
export type OtherPiece = Schemas["AlternativeToken"];
type News = Schemas["GenerationEvent"];

/** The request for a branch. */
export interface Order {
  model: string;
  settings: Sampling;
  seed: number;
  count: number;
}

export interface Branch {
  id: number;
  /** The parent branch, and the number of its tokens that are shared; null for a branch that starts with a prompt. */
  parent: number | null;
  from: number;
  /** The typed prompt, and its tokens; empty until the server has processed it. */
  typed: string;
  prompt: Piece[];
  /** The probability of each piece of the prompt; empty until it is known, null for the first piece. */
  read: (number | null)[];
  tokens: WrittenPiece[];
  /** Number of characters that are final, because no following sign can change them. */
  certain: number;
  order: Order;
  /** The reason why it ended; "" while it is generated. */
  stopped: "" | Schemas["GenerationEnd"]["stopped"];
  rate: number;
}

/** The token that the user selected at a position instead of the original one. */
export interface Choice {
  id: number;
  text: string;
  part: boolean;
  probability: number;
  rank: number;
  above: number;
}

let count = 0;

export class Column {
  branches: Branch[] = $state.raw([]);
  at: number | null = $state(null);
  writing = $state(false);
  error: ApiError | null = $state.raw(null);
  /** Tokens that end a text, for the current model. */
  ends: number[] = $state.raw([]);
  #giveUp: AbortController | null = null;
  /** The current writer of each branch; pending output of an earlier one is discarded. */
  #writers = new Map<number, AbortController>();

  get branch(): Branch | null {
    return this.branches.find((each) => each.id === this.at) ?? null;
  }

  /** The branches that start at the same position, including their parent. */
  get siblings(): Branch[] {
    const here = this.branch;
    if (here === null) return [];
    return this.branches.filter((each) => each === here || each.id === here.parent || each.parent === here.id || (here.parent !== null && each.parent === here.parent && each.from === here.from) || (here.parent === null && each.parent === null && each.typed === here.typed));
  }

  /** Generate from a prompt; an identical existing text is continued instead, because the same seed would give the same text. */
  async begin(typed: string, order: Order, still = false): Promise<void> {
    const here = this.branch;
    if (here !== null && here.typed === typed && sameOrder(here.order, order)) {
      if (this.writing) return; // already in progress
      if (here.tokens.length > 0) return this.goOn(order);
    }
    const branch: Branch = { id: (count += 1), parent: null, from: 0, typed, prompt: [], read: [], tokens: [], certain: 0, order, stopped: "", rate: 0 };
    await this.#write(branch, typed, order, still);
  }

  /** Generate from a prompt with a first token that the user selected; the prompt is the one that was processed. */
  async beginWith(typed: string, ids: readonly number[], choice: Choice, order: Order): Promise<void> {
    const tokens = [{ ...choice, adds: "", others: [] }];
    const branch: Branch = { id: (count += 1), parent: null, from: 0, typed, prompt: [], read: [], tokens, certain: 0, order, stopped: "", rate: 0 };
    await this.#write(branch, [...ids, choice.id], order);
  }

  /** Continue at the end of the current text. */
  async goOn(order: Order): Promise<void> {
    const here = this.branch;
    if (here === null) return;
    await this.#write({ ...here, order, stopped: "" }, idsOf(here, here.tokens.length), order);
  }

  /** Continue with another token at a position; the current text is kept as another branch. */
  async fork(place: number, choice: Choice, order: Order): Promise<void> {
    const here = this.branch;
    if (here === null) return;
    const chosen: WrittenPiece = { ...choice, adds: "", others: here.tokens[place]?.others ?? [] };
    const tokens = [...here.tokens.slice(0, place), chosen];
    const branch: Branch = { ...here, id: (count += 1), parent: here.id, from: place, tokens, certain: lettersOf(here.tokens.slice(0, place)), order, stopped: "", rate: 0 };
    if (place === here.tokens.length) Object.assign(branch, { id: here.id, parent: here.parent, from: here.from });
    await this.#write(branch, idsOf(branch, tokens.length), order);
  }

  /** Stop generating; the current text is kept. */
  stop(): void {
    this.#giveUp?.abort();
  }

  choose(id: number): void {
    if (id === this.at) return;
    this.stop();
    this.at = id;
  }

  /** Remove a branch and those that start from it; returns a function that restores them. */
  remove(id: number): () => void {
    if (this.at === id) this.stop();
    const before = { branches: this.branches, at: this.at };
    const gone = new Set([id]);
    for (const each of this.branches) if (each.parent !== null && gone.has(each.parent)) gone.add(each.id);
    this.branches = this.branches.filter((each) => !gone.has(each.id));
    if (this.at !== null && gone.has(this.at)) {
      const parent = before.branches.find((each) => each.id === id)?.parent ?? null;
      this.at = this.branches.find((each) => each.id === parent)?.id ?? this.branches.at(-1)?.id ?? null;
    }
    return () => {
      this.branches = [...before.branches, ...this.branches.filter((each) => !before.branches.some((old) => old.id === each.id))];
      this.at = before.at;
    };
  }

  forget(): void {
    this.stop();
    this.branches = [];
    this.at = null;
    this.error = null;
  }

  async #write(begun: Branch, prompt: string | number[], order: Order, still = false): Promise<void> {
    this.stop();
    const mine = new AbortController();
    this.#giveUp = mine;
    this.#writers.set(begun.id, mine);
    this.error = null;
    this.writing = true;
    const before = { branches: this.branches, at: this.at };
    this.at = begun.id;
    const from = performance.now();
    const first = begun.tokens.length;
    const show = this.#shower(begun, mine, still);
    try {
      for await (const data of events("/api/write", { method: "POST", body: asked(prompt, order), signal: mine.signal })) {
        if (data === "[DONE]") break;
        const news = JSON.parse(data) as News & { error?: Schemas["ErrorDetail"] };
        if (news.error !== undefined) throw refused(news.error, 500);
        show.take(news, typeof prompt === "string");
        if (news.ends.length > 0) this.ends = news.ends;
      }
    } catch (error) {
      if (!isAbort(error)) this.error = asError(error);
    }
    const branch = show.now();
    if (branch === begun && this.#writers.get(begun.id) === mine) this.#takeBack(before, begun.id); // nothing was received: an error, or stopped at once
    const rate = branch.rate > 0 ? branch.rate : (1000 * (branch.tokens.length - first)) / Math.max(1, performance.now() - from);
    if (branch !== begun) show.end({ stopped: branch.stopped || "cancelled", certain: lettersOf(branch.tokens), rate });
    if (this.#giveUp === mine) {
      this.#giveUp = null;
      this.writing = false;
    }
    void this.#reread(branch);
  }

  /** The probability of the prompt, requested after generation, so as not to delay it. */
  async #reread(branch: Branch): Promise<void> {
    if (branch.prompt.length < 2 || branch.read.length > 0) return;
    try {
      const found = await post("/api/read", { model: branch.order.model, prompt: branch.prompt.map((piece) => piece.id) });
      const read = found.tokens.map((each) => each.probability);
      this.branches = this.branches.map((each) => (each.prompt === branch.prompt ? { ...each, read } : each));
    } catch {
      // the prompt stays as it is, without tints
    }
  }

  #takeBack(before: { branches: Branch[]; at: number | null }, id: number): void {
    const was = before.branches.find((each) => each.id === id);
    this.branches = this.branches.flatMap((each) => (each.id !== id ? [each] : was === undefined ? [] : [was]));
    if (this.at === id && was === undefined) this.at = before.at;
  }

  /** Collects the output and shows it once per frame; `still`: only at the end. */
  #shower(begun: Branch, mine: AbortController, still: boolean) {
    let branch = begun;
    let waiting = 0;
    const put = () => {
      waiting = 0;
      if (this.#writers.get(branch.id) !== mine) return;
      const known = this.branches.some((each) => each.id === branch.id);
      this.branches = known ? this.branches.map((each) => (each.id === branch.id ? branch : each)) : [...this.branches, branch];
    };
    if (!still) put();
    return {
      now: () => branch,
      take: (news: News, isText: boolean) => {
        if (news.prompt != null) branch = read(branch, news.prompt, isText);
        if (news.tokens.length > 0) branch = { ...branch, tokens: [...branch.tokens, ...news.tokens] };
        branch = { ...branch, certain: branch.certain + news.letters.length };
        if (news.end != null) branch = { ...branch, stopped: news.end.stopped, rate: news.end.tokens_per_second };
        if (!still && waiting === 0) waiting = requestAnimationFrame(put);
      },
      end: (last: Partial<Branch>) => {
        if (waiting !== 0) cancelAnimationFrame(waiting);
        branch = { ...branch, ...last };
        put();
      },
    };
  }
}

/** The tokens that the server processed: the pieces of a prompt, or the characters that a selected token adds. */
function read(branch: Branch, pieces: Piece[], isText: boolean): Branch {
  if (isText) return { ...branch, prompt: pieces };
  const last = branch.tokens.at(-1);
  if (last === undefined || last.adds !== "") return { ...branch };
  const adds = pieces.at(-1)?.adds ?? "";
  const prompt = branch.prompt.length > 0 ? branch.prompt : pieces.slice(0, -1);
  return { ...branch, prompt, tokens: [...branch.tokens.slice(0, -1), { ...last, adds }], certain: branch.certain + adds.length };
}

/** The tokens before a position, including the prompt, on which the next one depends. */
export function idsOf(branch: Branch, place: number): number[] {
  return [...branch.prompt.map((piece) => piece.id), ...branch.tokens.slice(0, place).map((token) => token.id)];
}

export function textOf(branch: Branch): string {
  return promptOf(branch) + branch.tokens.map((token) => token.adds).join("");
}

export function promptOf(branch: Branch): string {
  return branch.prompt.length > 0 ? branch.prompt.map((piece) => piece.adds).join("") : branch.typed;
}

/** The prompt with the probability of each piece, or nothing until it is known; the start of a document has none. */
export function givenOf(branch: Branch): { adds: string; probability: number }[] {
  return branch.prompt.flatMap((piece, i) => {
    const probability = branch.read[i] ?? null;
    return probability === null ? (piece.adds === "" || branch.read.length === 0 ? [] : [{ adds: piece.adds, probability: 1 }]) : [{ adds: piece.adds, probability }];
  });
}

export function lettersOf(tokens: readonly WrittenPiece[]): number {
  return tokens.reduce((total, token) => total + token.adds.length, 0);
}

export function sameOrder(one: Order, other: Order): boolean {
  return one.model === other.model && one.seed === other.seed && same(one.settings, other.settings);
}

function asked(prompt: string | number[], order: Order): string {
  const body: Schemas["WriteRequest"] = { model: order.model, prompt, max_tokens: order.count, seed: order.seed, others: 8, ...order.settings };
  return JSON.stringify(body);
}

/** The scores of all next tokens, and the texts of the best ones. */
export interface Scores {
  head: Schemas["LogitsHeader"];
  logits: Float32Array;
}

export async function scoresOf(model: string, prompt: string | number[], signal: AbortSignal): Promise<Scores> {
  const answer = await request("/api/logits", { method: "POST", body: JSON.stringify({ model, prompt }), signal });
  const content = await answer.arrayBuffer();
  const length = new DataView(content).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 4, length))) as Schemas["LogitsHeader"];
  return { head, logits: new Float32Array(content, 4 + length, head.vocabulary) };
}
