/** What the page and its worker say to each other. */
import type { Sampling } from "@/math/sampling";
import type { Description } from "@/model/description";

export interface Order {
  count: number;
  seed: number;
  settings: Sampling;
}

export interface Piece {
  id: number;
  /** As it is shown alone: a space as a sign. */
  text: string;
  /** Part of a character: shown as bytes. */
  part: boolean;
}

export interface ReadPiece extends Piece {
  /** The characters that it completes; none where the next token does, or where it is a mark. */
  adds: string;
}

export interface GeneratedToken extends ReadPiece {
  /** What the model itself gave it, before any setting acted. */
  probability: number;
  rank: number;
  /** What the likelier ones have together. */
  above: number;
  others: (Piece & { probability: number })[];
}

export type Question =
  | { kind: "open"; description: Description; weights: string; simd: boolean }
  | { kind: "read"; texts: string[] }
  /** `ids`: what stands there; the first `prompt` of them were typed. */
  | { kind: "write"; ids: number[]; prompt: number; order: Order }
  | { kind: "scores"; ids: number[]; prompt: number };

export interface Answers {
  open: { simd: boolean; milliseconds: number };
  read: { ids: number[]; pieces: ReadPiece[] }[];
  write: { stopped: "length" | "end" | "stop"; perSecond: number };
  /** `pieces`: those with the best logits, spelled. */
  scores: { logits: Float32Array; pieces: Piece[]; first: number; layers: Float32Array[][] };
}

export type ToWorker = { number: number; question: Question } | { stop: true };
export type FromWorker =
  | { number: number; answer: Answers[keyof Answers] }
  /** What each token that stood there behind the prompt adds to the text. */
  | { number: number; kept: string[] }
  | { number: number; token: GeneratedToken; certain: number }
  | { number: number; error: string };
