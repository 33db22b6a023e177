/** The source of the sheet: the workshop's, one drawn from a seed, or a head of a model. It is stored completely in the address. */
import { post, request, type Schemas } from "@/api/client";
import { preferences } from "@/state/preferences.svelte";
import { fromData, type Step } from "@/math/sheet";
import type { Work } from "./work.svelte";

export type SheetRequest = Schemas["ExerciseRequest"];

export interface LoadedSheet {
  steps: Step[];
  text: string;
  place: string;
  remarks: Schemas["TranslatableMessage"][];
}

/** A sheet, and the work on it. */
export interface Opened {
  laid: LoadedSheet;
  work: Work;
  /** The sheet's description in a score file; null if there can be none. */
  score: { sheet: string; /** Whether the file contains all given matrices, or only the inputs of a head. */ whole: boolean } | null;
}

/** The request to the server for this sheet. */
export interface Fetched extends Opened {
  asked: SheetRequest;
}

/** The description of the sheet for the teacher; the file has its numbers, except those of a model. */
export function scoreOf({ model, paper, size, seed }: SheetRequest): Opened["score"] {
  if (model != null) return null;
  if (paper != null) return { sheet: seed === 0 ? paper : `${paper}, seed ${seed}`, whole: true };
  return { sheet: size == null ? "workshop" : `${size}, seed ${seed}`, whole: false };
}

/** Named sheets: a complete block of two heads, and the examples of the notes. */
export const PAPERS = ["block", "thinking", "robot", "bank", "positions"] as const;

/** Parse the address: `s` is a size such as 4x6x3, a paper's name, or `head`; the default is the workshop's sheet. */
export function sheetRequestFor(query: Record<string, string>, model: string, text: string): SheetRequest {
  const usual = { language: "en" as const, seed: 0, layer: 0, head: 0, part: "attention" as const };
  const kind = query.s ?? "";
  if (kind === "") return usual;
  const paper = PAPERS.find((each) => each === kind);
  if (paper !== undefined) return { ...usual, paper, language: preferences.language, seed: paper === "block" ? count(query.seed) : 0 };
  if (kind !== "head") return { ...usual, size: kind, seed: count(query.seed) };
  const crossing = query.part === "cross";
  return {
    ...usual,
    model,
    text,
    layer: count(query.l),
    head: count(query.h),
    part: crossing ? "cross" : "attention",
    ...(query.y ? { target: query.y } : {}),
  };
}

/** The key under which a browser stores the work on a sheet. */
export const storageKey = (asked: SheetRequest): string =>
  `kotha.hand.${JSON.stringify([asked.size ?? "", asked.seed, asked.paper ?? asked.model ?? "", asked.text ?? "", asked.layer, asked.head, asked.part, asked.target ?? ""])}`;

export async function fetchSheet(asked: SheetRequest, signal?: AbortSignal): Promise<LoadedSheet> {
  const sheet = await post("/api/exercise", asked, signal);
  return { steps: fromData(sheet.steps), text: sheet.text, place: sheet.place, remarks: sheet.remarks };
}

/** The sheet as a spreadsheet with live formulas and the current numbers. */
export async function fetchSpreadsheet({ asked, work }: Fetched): Promise<Blob> {
  const matrices = Object.fromEntries(work.steps.flatMap((step) => (step.operation === null ? [[step.name, step.values]] : [])));
  const own = asked.paper != null || (asked.model == null && work.isOwn);
  const answer = await request("/api/exercise/spreadsheet", { method: "POST", body: JSON.stringify({ ...asked, ...(own ? { matrices } : {}) }) });
  return answer.blob();
}

function count(text: string | undefined): number {
  const value = Math.trunc(Number(text ?? 0));
  return Number.isFinite(value) && value >= 0 ? Math.min(value, 99_999) : 0;
}
