/** What Python puts into the page of a sheet. */
import type { Schemas } from "@/api/client";
import type { Page } from "@/words/localize";
import type { Language } from "@/state/preferences.svelte";

type Both<T> = Record<Language, T>;
/** The same in Bangla unless it is there too. */
interface Labels {
  en: string[];
  bn?: string[];
}
type StepData = Schemas["ExerciseStep"];

/** A step that is worked out: readable numbers, and the arithmetic of some of its cells. */
export interface SolvedStep {
  given: boolean;
  cells: string[][];
  /** Of weights, each cell's share of its row; of others nothing. */
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
  /** What is to be worked out, in the shape that the server gives it; the other language has only its labels. */
  asked: { en: StepData[]; bn: Partial<Pick<StepData, "rows" | "columns">>[] } | null;
  /** Why nothing is asked. */
  why_not: string;
  /** As a score file names it; null where there is none. */
  called: string | null;
  /** Under which name a browser keeps the work. */
  kept_as: string;
  solved: SolvedStep[];
}

export type PageData = Page<{ sheet: SheetData }>;
