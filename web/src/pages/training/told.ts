/** What Python puts into the page of a training: which component shows it, and its data. */
import type { Schemas } from "@/api/client";

type Run = Schemas["RunTold"];
type Answer = Schemas["DoctorAnswer"];

export interface DoctorData extends Pick<Run, "sizes" | "steps" | "epochs" | "references" | "predicted_seconds" | "predicted_bytes" | "evaluations">, Answer {
  /** Whose curve. */
  name: string;
  /** Its points, a list for each figure: shorter than a list of points. */
  columns: { [Name in keyof Schemas["CurvePoint"]]: Schemas["CurvePoint"][Name][] };
  /** Whether n-grams are among the references. */
  counted: boolean;
}

interface Named {
  title: string;
  remarks: string[];
  made_by: string;
}

export type Told = Named & { kind: "doctor"; data: DoctorData };
