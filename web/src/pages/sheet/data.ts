/** The data that Python puts into the page of a sheet. */
import type { Schemas } from "@/api/client";
import type { Page } from "@/words/localize";
import type { Language } from "@/state/preferences.svelte";

type Both<T> = Record<Language, T>;
/** The Bangla labels are omitted if they equal the English ones. */
interface Labels {
  en: string[];
  bn?: string[];
}
type StepData = Schemas["ExerciseStep"];

/** A solved step: readable numbers, and the arithmetic of some of its cells. */
export interface SolvedStep {
  given: boolean;
  cells: string[][];
  /** For weights, each cell's share of its row; otherwise empty. */
  shares: (number | null)[][];
  sums: string[];
  title: Both<string>;
  remark: Both<string>;
  columns: Labels;
  rows: Labels;
}

export interface SheetData {
  title: Both<string>;
  lead: Both<string>;
  remarks: Both<string[]>;
  text: string;
  target: string | null;
  /** The sheet in the shape that the server returns; the other language has only labels. */
  asked: { en: StepData[]; bn: Partial<Pick<StepData, "rows" | "columns">>[] } | null;
  /** The reason why there are no questions. */
  why_not: string;
  /** The name in a score file; null if there is none. */
  called: string | null;
  /** The key under which a browser stores the work. */
  kept_as: string;
  solved: SolvedStep[];
}

export type PageData = Page<{ sheet: SheetData }>;
