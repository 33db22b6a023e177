/** The work on one sheet: answers, tries, hints and shown steps, cell by cell. Stored in this browser until it is cleared. */
import { gradeCell, readCell, type Verdict } from "@/math/grading";
import { diagnose, type Mistake } from "@/math/diagnosis";
import { FULL, points } from "@/math/points";
import type { ScoredAnswer } from "@/math/score";
import { asShown, cellsOf, compute, flow, key, matricesOf, reads, slackOf, type Cell, type Matrices, type Step } from "@/math/sheet";
import { recallParts, remember } from "@/state/remembered";

export const HINTS = 3;

export interface Answer {
  /** All graded answers, the last one at the end. */
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
  /** The learner's replacements for given numbers. */
  edits: Record<string, number> = $state.raw({});
  /** Cells that the last edit changed. */
  changed: ReadonlySet<string> = $state.raw(new Set());
  drafts: Record<string, string> = $state({});
  #counted: Record<string, Answer> = $state.raw({});
  /** Answers with changed numbers, which are graded but give no points. */
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
  /** Answers that give points, with the sheet's own numbers. */
  get counted(): Readonly<Record<string, Answer>> {
    return this.#counted;
  }

  /** The work so far, for a score file. */
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

  /** The displayed numbers of a matrix: given ones, the learner's if they are correct, and those that the page filled in. */
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

  /** The sheet with the displayed numbers, and computed ones where the learner has none yet. */
  get own(): Matrices {
    return Object.fromEntries(
      this.#steps.map((step) => [step.name, step.values.map((line, r) => line.map((value, c) => this.#seen[step.name]?.[r]?.[c] ?? value))]),
    );
  }

  /** The number in a text, if there is one. */
  read(text: string): number | null {
    return readCell(text)?.value ?? null;
  }

  /** Grade and store the text typed for a cell. */
  grade(step: Step, row: number, column: number, text: string): { verdict: Verdict; mistakes: Mistake[] } {
    const own = this.own;
    const slack = slackOf(step);
    const wanted = [step.values[row]?.[column] ?? NaN, compute(step, own, row, column)];
    const { verdict, typed } = gradeCell(text, wanted, slack);
    const before = this.answer(step.name, row, column);
    if (verdict !== "unreadable") this.#set(step.name, row, column, { ...before, tries: [...before.tries, text], verdict });
    return { verdict, mistakes: verdict === "wrong" && typed !== null ? this.mistakes(step, row, column, text) : [] };
  }

  /** The mistake in an answer, if it can be identified. */
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

  /** Fill in the open cells of a step. */
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

  /** Points so far, and the maximum; of a step, or of the sheet. */
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

  /** Replace a given number; cells that depend on it are updated. */
  edit(name: string, row: number, column: number, value: number): void {
    this.editAll(name, [{ row, column, value }]);
  }

  /** Replace several given numbers at once; returns a function that undoes it. */
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

  /** Restore the sheet's own numbers; returns a function that undoes it. */
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

  /** Clear the work on the sheet; returns a function that undoes it. */
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
            if (value === -Infinity) return value; // stored as -999
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

/** The points of an answer, or those of the next try if it is correct. */
function worthOf({ tries, hints, verdict }: Answer): number {
  return points(tries.length - (verdict === "right" ? 1 : 0), hints, verdict === "shown");
}

/** Whether two numbers differ by more than rounding. */
function differ(now: number, before: number | undefined): boolean {
  return now !== before && !(Math.abs(now - (before ?? NaN)) < 1e-12);
}

/** With other given numbers, correct answers become computed values, which are updated. */
function flowing(answers: Readonly<Record<string, Answer>>): Record<string, Answer> {
  return Object.fromEntries(
    Object.entries(answers).flatMap(([cell, answer]) =>
      answer.verdict === "right" || answer.verdict === "shown" ? [[cell, { ...answer, verdict: "shown" as const }]] : [],
    ),
  );
}

