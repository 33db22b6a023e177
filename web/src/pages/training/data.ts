/** The data that Python puts into the page of a training run, with the component that shows it. */
import type { Page, ServerMessage } from "@/words/localize";
import type { Schemas } from "@/api/client";

type Run = Schemas["RunResponse"];
type Answer = Schemas["DoctorResponse"];

export interface DoctorData extends Pick<Run, "sizes" | "steps" | "epochs" | "references" | "predicted_seconds" | "predicted_bytes" | "evaluations">, Answer {
  /** The name of the run. */
  name: string;
  /** Its points as one list for each metric, which is shorter than a list of points. */
  columns: { [Name in keyof Schemas["CurvePoint"]]: Schemas["CurvePoint"][Name][] };
  /** Whether the references include n-grams. */
  counted: boolean;
}

type Plan = Schemas["PlanResponse"];
type ByPart = Record<string, number>;

export interface PlanData extends Omit<Plan, "flops" | "design" | "compiled" | "flops_per_token" | "time_source"> {
  time_source: ServerMessage | string | null;
  flops: { forward_per_token: ByPart; training_per_token: ByPart; forward_per_token_total: number; training_per_token_total: number; per_step: number; rule_of_thumb_per_token: number; rule_of_thumb_ratio: number };
  /** The learning rate: some steps, each with its share of the peak. */
  schedule: { name: "stable" | "cosine" | "inverse-sqrt" | "constant"; steps: number; warmup: number; rate: number; muon_rate: number | null; last_share: number; points: [number, number][] };
  /** If sizes were chosen: which, why, and the sizes that did not fit. */
  design: { reasons: { what: ServerMessage | string; value: ServerMessage | string; why: ServerMessage | string }[]; considered: { layers: number; width: number; parameters: number; verdict: ServerMessage | string | null }[]; commands: string[] } | null;
}

export type PageData = Page<{ doctor: DoctorData; plan: PlanData }>;
