/** The data that Python puts into a page, in the shapes that the server returns, with the component that shows it. */
import type { Page } from "@/words/localize";
import type { Schemas } from "@/api/client";

export type Piece = Schemas["Piece"];

/** The weights of an attention module, as 16-bit numbers in base64: heads, queries, keys. */
export interface PackedMap extends Pick<Schemas["AttentionWeights"], "name" | "queries" | "keys" | "heads" | "causal" | "shape"> {
  weights: string;
  /** The weights of the same queries and keys under the other mask. */
  other: string | null;
}

export interface AttentionData extends Pick<Schemas["AttentionResponse"], "family" | "grid" | "written_from"> {
  lines: Record<string, Piece[]>;
  /** The stored value of a weight of 1. */
  one: number;
  maps: PackedMap[];
  steps: (Omit<Schemas["WrittenToken"], "best"> & { best: (Piece & { id: number; probability: number })[] })[];
  /** RGB, row by row, in base64. */
  image: { height: number; width: number; pixels: string } | null;
}

export interface FlowData extends Omit<Schemas["FlowStations"], "lines" | "remarks"> {
  lines: Record<string, Piece[]>;
  masked: number[];
}

export type LensData = Omit<Schemas["LogitLens"], "remarks"> & { written_from: number | null };

export interface HeadsData extends Omit<Schemas["Study"], "heads" | "text"> {
  /** The source file, if the text was not given directly. */
  text: string | null;
  /** Each with its evidence as numbers. */
  heads: (Schemas["HeadReport"] & { found: { kind: string; share: number; chance: number; offset: number | null; leans: boolean; on_repeats: boolean } | null })[];
  threshold: number;
  broad_threshold: number;
}

export type AlignmentData = Omit<Schemas["AlignmentTable"], "remarks">;

export type PageData = Page<{ attention: AttentionData; flow: FlowData; lens: LensData; heads: HeadsData; alignment: AlignmentData }>;
