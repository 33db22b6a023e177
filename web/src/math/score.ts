/** Score files: the work on a sheet, to be handed in to a teacher and graded again from its numbers. */
import { gradeCell } from "./grading";
import { FULL, points } from "./points";
import { asShown, compute, flow, key, slackOf, type Step } from "./sheet";

export const KIND = "kotha-score";
export const VERSION = 1;

export interface ScoredAnswer {
  cell: string;
  tries: string[];
  hints: number;
  verdict: string;
  points: number;
}

export interface ScoreFile {
  kind: string;
  version: number;
  name: string;
  /** The sheet: `workshop`, or `4x6x3, seed 7`. */
  sheet: string;
  /** The numbers of the sheet as texts, so that all programs write them in the same way. */
  given: Record<string, string[][]>;
  answers: ScoredAnswer[];
  points: number;
  possible: number;
  made: string;
}

/** Parse a score file; null if the text is not one. */
export function parseScore(text: string): ScoreFile | null {
  try {
    const file = JSON.parse(text) as ScoreFile;
    const whole = file.kind === KIND && file.version === VERSION && Array.isArray(file.answers) && typeof file.given === "object" && file.given !== null;
    const wellFormed = whole && file.answers.every((each) => typeof each.cell === "string" && Array.isArray(each.tries) && each.tries.every((typed) => typeof typed === "string") && Number.isInteger(each.hints));
    const numbers = wellFormed && Object.values(file.given).every((rows) => Array.isArray(rows) && rows.length <= 12 && rows.every((row) => Array.isArray(row) && row.length <= 12));
    return numbers ? file : null;
  } catch {
    return null;
  }
}

export interface StepScore {
  name: string;
  right: number;
  shown: number;
  cells: number;
  points: number;
}
export interface Regraded {
  steps: StepScore[];
  points: number;
  possible: number;
  /** Cells that the file marks as correct but that are not. */
  refused: string[];
}

/** The size of the sheet in a file; null if its matrices do not fit together. */
export function sizeOf(file: ScoreFile): string | null {
  const [x, q, k, v] = ["X", "W_Q", "W_K", "W_V"].map((name) => file.given[name]);
  if (!x?.length || !q?.length || !k?.length || !v?.length) return null;
  const [tokens, width, head] = [x.length, q.length, q[0]?.length ?? 0];
  const fits = x.every((row) => row.length === width) && [q, k, v].every((each) => each.length === width && each.every((row) => row.length === head));
  return fits ? `${tokens}x${width}x${head}` : null;
}

/** Grade a file again on a sheet of its size; the verdicts in the file are ignored. */
export function regrade(file: ScoreFile, blank: readonly Step[]): Regraded {
  const edits: Record<string, number> = {};
  for (const [name, rows] of Object.entries(file.given)) rows.forEach((row, r) => row.forEach((value, c) => (edits[key(name, r, c)] = Number(value))));
  const steps = flow(blank, edits);
  const answers = new Map(file.answers.map((each) => [each.cell, each]));
  const own: Record<string, number[][]> = Object.fromEntries(steps.map((step) => [step.name, step.values.map((row) => row.map(asShown))]));
  const refused: string[] = [];
  const scores = steps.filter((step) => step.operation !== null).map((step): StepScore => {
    const score = { name: step.name, right: 0, shown: 0, cells: 0, points: 0 };
    const carried = step.values.map((row, r) => row.map((_, c) => compute(step, own, r, c)));
    step.values.forEach((row, r) =>
      row.forEach((value, c) => {
        score.cells += 1;
        const answer = answers.get(key(step.name, r, c));
        if (answer?.verdict === "shown") score.shown += 1;
        if (answer?.verdict !== "right") return;
        const last = answer.tries.at(-1) ?? "";
        const { verdict, typed } = gradeCell(last, [value, carried[r]?.[c] ?? NaN], slackOf(step));
        if (verdict !== "right" || typed === null) {
          refused.push(answer.cell);
          return;
        }
        score.right += 1;
        score.points += points(answer.tries.length - 1, answer.hints, false);
        const line = own[step.name]?.[r];
        if (line !== undefined) line[c] = value === -Infinity ? value : typed.value;
      }),
    );
    return score;
  });
  return {
    steps: scores,
    points: scores.reduce((sum, each) => sum + each.points, 0),
    possible: FULL * scores.reduce((sum, each) => sum + each.cells, 0),
    refused,
  };
}
