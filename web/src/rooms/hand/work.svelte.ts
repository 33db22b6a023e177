/** The work on one sheet: what was typed, tried, hinted and shown, cell by cell. Kept in this browser until it is cleared. */
import { gradeCell, readCell, type Verdict } from "@/math/grading";
import { diagnose, type Mistake } from "@/math/diagnosis";
import { FULL, points } from "@/math/points";
import type { ScoredAnswer } from "@/math/score";
import { asShown, cellsOf, compute, flow, key, matricesOf, reads, slackOf, type Cell, type Matrices, type Step } from "@/math/sheet";
import { recallParts, remember } from "@/state/remembered";

export const HINTS = 3;

export interface Answer {
  /** Everything that was graded, the last one last. */
  tries: string[];
  hints: number;
  verdict: Verdict | "open" | "shown";
}

interface Kept {
  answers: Record<string, Answer>;
  edits: Record<string, number>;
}

const untouched: Answer = { tries: [], hints: 0, verdict: "open" };

export class Work {
  readonly base: readonly Step[];
  readonly #name: string;
  /** Numbers of one's own instead of given ones. */
  edits: Record<string, number> = $state.raw({});
  /** Cells that an edit has just changed. */
  changed: ReadonlySet<string> = $state.raw(new Set());
  drafts: Record<string, string> = $state({});
  #counted: Record<string, Answer> = $state.raw({});
  /** Answers with numbers of one's own: graded, not counted. */
  #tried: Record<string, Answer> = $state.raw({});
  readonly #steps: readonly Step[] = $derived.by(() => (this.isOwn ? flow(this.base, this.edits) : this.base));
  readonly #seen: Record<string, (number | null)[][]> = $derived.by(() => this.#look());

  constructor(base: readonly Step[], name: string) {
    this.base = base;
    this.#name = name;
    const { answers = {}, edits = {} } = recallParts<Kept>(name);
    this.#counted = answers;
    this.edits = edits;
    if (this.isOwn) this.#tried = flowing(answers);
  }

  get isOwn(): boolean {
    return Object.keys(this.edits).length > 0;
  }
  get steps(): readonly Step[] {
    return this.#steps;
  }
  get truth(): Matrices {
    return matricesOf(this.#steps);
  }
  get asked(): readonly Step[] {
    return this.#steps.filter((step) => step.operation !== null);
  }
  get answers(): Readonly<Record<string, Answer>> {
    return this.isOwn ? this.#tried : this.#counted;
  }
  /** Those that bring points: with the sheet's own numbers. */
  get counted(): Readonly<Record<string, Answer>> {
    return this.#counted;
  }

  /** What is done so far, for a score file. */
  scored(): ScoredAnswer[] {
    return this.base.flatMap((step) =>
      step.values.flatMap((line, r) =>
        line.flatMap((_, c): ScoredAnswer[] => {
          const answer = this.#counted[key(step.name, r, c)];
          if (answer === undefined) return [];
          const { tries, hints, verdict } = answer;
          return [{ cell: key(step.name, r, c), tries: [...tries], hints, verdict, points: isDone(answer) ? worthOf(answer) : 0 }];
        }),
      ),
    );
  }

  step(name: string): Step | undefined {
    return this.#steps.find((each) => each.name === name);
  }

  answer(name: string, row: number, column: number): Answer {
    return this.answers[key(name, row, column)] ?? untouched;
  }

  isDone(name: string, row: number, column: number): boolean {
    return isDone(this.answer(name, row, column));
  }

  /** What the page shows of a matrix: given numbers, one's own where they are right, the machine's where they were shown. */
  seen(name: string): (number | null)[][] {
    return this.#seen[name] ?? [];
  }

  /** Cells that must be known before this one can be worked out. */
  missing(step: Step, row: number, column: number): { name: string; cell: Cell } | null {
    for (const lit of reads(step, this.truth, row, column)) {
      const open = cellsOf(lit, this.truth[lit.name] ?? []).find(([r, c]) => this.seen(lit.name)[r]?.[c] == null);
      if (open !== undefined) return { name: lit.name, cell: open };
    }
    return null;
  }

  /** The sheet with the numbers that are seen, the machine's where one has none yet. */
  get own(): Matrices {
    return Object.fromEntries(
      this.#steps.map((step) => [step.name, step.values.map((line, r) => line.map((value, c) => this.#seen[step.name]?.[r]?.[c] ?? value))]),
    );
  }

  /** The number that a text says, if it says one. */
  read(text: string): number | null {
    return readCell(text)?.value ?? null;
  }

  /** Grade what was typed for a cell, and remember it. */
  grade(step: Step, row: number, column: number, text: string): { verdict: Verdict; mistakes: Mistake[] } {
    const own = this.own;
    const slack = slackOf(step);
    const wanted = [step.values[row]?.[column] ?? NaN, compute(step, own, row, column)];
    const { verdict, typed } = gradeCell(text, wanted, slack);
    const before = this.answer(step.name, row, column);
    if (verdict !== "unreadable") this.#set(step.name, row, column, { ...before, tries: [...before.tries, text], verdict });
    return { verdict, mistakes: verdict === "wrong" && typed !== null ? this.mistakes(step, row, column, text) : [] };
  }

  /** What went wrong with an answer, as far as it can be told. */
  mistakes(step: Step, row: number, column: number, text: string): Mistake[] {
    const typed = readCell(text);
    return typed === null ? [] : diagnose(typed, text, this.#steps, step, [this.truth, this.own], row, column, slackOf(step));
  }

  hint(name: string, row: number, column: number): void {
    const before = this.answer(name, row, column);
    this.#set(name, row, column, { ...before, hints: Math.min(HINTS, before.hints + 1) });
  }

  show(name: string, row: number, column: number): void {
    this.#set(name, row, column, { ...this.answer(name, row, column), verdict: "shown" });
  }

  /** Let the machine fill in what is open of a step. */
  fill(name: string): void {
    const made = { ...this.answers };
    const step = this.step(name);
    step?.values.forEach((line, r) =>
      line.forEach((_, c) => {
        if (!this.isDone(name, r, c)) made[key(name, r, c)] = { ...this.answer(name, r, c), verdict: "shown" };
      }),
    );
    this.#keep(made);
  }

  worth(name: string, row: number, column: number): number {
    return worthOf(this.answer(name, row, column));
  }

  /** Points so far, and how many there are; of a step, or of the sheet. */
  score(name: string | null = null, answers: Readonly<Record<string, Answer>> = this.answers): { points: number; of: number; right: number; done: number; cells: number } {
    const found = { points: 0, of: 0, right: 0, done: 0, cells: 0 };
    for (const step of this.asked) {
      if (name !== null && step.name !== name) continue;
      step.values.forEach((line, r) =>
        line.forEach((_, c) => {
          const answer = answers[key(step.name, r, c)] ?? untouched;
          found.of += FULL;
          found.cells += 1;
          if (answer.verdict === "right") found.right += 1;
          if (!isDone(answer)) return;
          found.done += 1;
          found.points += worthOf(answer);
        }),
      );
    }
    return found;
  }

  /** Another number for a given one; what is below flows. */
  edit(name: string, row: number, column: number, value: number): void {
    this.editAll(name, [{ row, column, value }]);
  }

  /** Other numbers for given ones, at once; what is given back undoes that. */
  editAll(name: string, cells: readonly { row: number; column: number; value: number }[]): () => void {
    const before = this.truth;
    const [kept, tried] = [this.edits, this.#tried];
    const own = this.base.find((each) => each.name === name);
    const edits = { ...this.edits };
    for (const { row, column, value } of cells) {
      if (value === own?.values[row]?.[column]) delete edits[key(name, row, column)];
      else edits[key(name, row, column)] = value;
    }
    const starting = !this.isOwn;
    if (starting) this.#tried = flowing(this.#counted);
    this.edits = edits;
    if (!this.isOwn) this.#tried = {};
    const changed = new Set<string>();
    for (const step of this.#steps) {
      step.values.forEach((line, r) => line.forEach((now, c) => differ(now, before[step.name]?.[r]?.[c]) && changed.add(key(step.name, r, c))));
    }
    if (this.isOwn) this.#tried = Object.fromEntries(Object.entries(this.#tried).map(([cell, answer]) => [cell, changed.has(cell) && answer.verdict === "right" ? { ...answer, verdict: "shown" as const } : answer]));
    this.changed = changed;
    this.#store();
    return () => {
      this.edits = kept;
      this.#tried = tried;
      this.#store();
    };
  }

  /** The sheet's own numbers again; what is given back undoes that. */
  reset(): () => void {
    const { edits } = this;
    const tried = this.#tried;
    this.edits = {};
    this.#tried = {};
    this.#store();
    return () => {
      this.edits = edits;
      this.#tried = tried;
      this.#store();
    };
  }

  /** Begin the sheet anew; what is given back undoes that. */
  clear(): () => void {
    const before = this.answers;
    this.#keep({});
    this.drafts = {};
    return () => this.#keep(before);
  }

  #look(): Record<string, (number | null)[][]> {
    return Object.fromEntries(
      this.#steps.map((step) => [
        step.name,
        step.values.map((line, r) =>
          line.map((value, c) => {
            if (step.operation === null) return asShown(value);
            const { verdict, tries } = this.answer(step.name, r, c);
            if (verdict === "shown") return asShown(value);
            if (verdict !== "right") return null;
            if (value === -Infinity) return value; // -999 stands for it
            return readCell(tries.at(-1) ?? "")?.value ?? value;
          }),
        ),
      ]),
    );
  }

  #set(name: string, row: number, column: number, answer: Answer): void {
    this.#keep({ ...this.answers, [key(name, row, column)]: answer });
  }

  #keep(answers: Record<string, Answer>): void {
    if (this.isOwn) this.#tried = answers;
    else this.#counted = answers;
    this.#store();
  }

  #store(): void {
    const kept: Kept = { answers: this.#counted, edits: this.edits };
    remember(this.#name, JSON.stringify(kept));
  }
}

const isDone = ({ verdict }: Answer): boolean => verdict === "right" || verdict === "shown";

/** What an answer brings, or would bring if the next try were right. */
function worthOf({ tries, hints, verdict }: Answer): number {
  return points(tries.length - (verdict === "right" ? 1 : 0), hints, verdict === "shown");
}

/** Whether two numbers are others, the last bits of a sum aside. */
function differ(now: number, before: number | undefined): boolean {
  return now !== before && !(Math.abs(now - (before ?? NaN)) < 1e-12);
}

/** With other numbers given, what was right is now the machine's, and flows. */
function flowing(answers: Readonly<Record<string, Answer>>): Record<string, Answer> {
  return Object.fromEntries(
    Object.entries(answers).flatMap(([cell, answer]) =>
      answer.verdict === "right" || answer.verdict === "shown" ? [[cell, { ...answer, verdict: "shown" as const }]] : [],
    ),
  );
}

