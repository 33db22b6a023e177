/** The messages between the page and its worker. */
import type { Sampling } from "@/math/sampling";
import type { Description } from "@/model/description";

export interface Order {
  count: number;
  seed: number;
  settings: Sampling;
}

export interface Piece {
  id: number;
  /** The display form of the text: a space is shown as a symbol. */
  text: string;
  /** Whether it is part of a character, which is shown as bytes. */
  part: boolean;
}

export interface ReadPiece extends Piece {
  /** The characters that it completes; none if a later token completes them, or for a special token. */
  adds: string;
}

export interface GeneratedToken extends ReadPiece {
  /** The model's probability, before any setting is applied. */
  probability: number;
  rank: number;
  /** Total probability of the more likely tokens. */
  above: number;
  others: (Piece & { probability: number })[];
}

export type Question =
  | { kind: "open"; description: Description; weights: string; simd: boolean }
  | { kind: "read"; texts: string[] }
  /** `ids`: the current tokens; the first `prompt` of them were typed. */
  | { kind: "write"; ids: number[]; prompt: number; order: Order }
  | { kind: "scores"; ids: number[]; prompt: number };

export interface Answers {
  open: { simd: boolean; milliseconds: number };
  read: { ids: number[]; pieces: ReadPiece[] }[];
  write: { stopped: "length" | "end" | "stop"; perSecond: number };
  /** `pieces`: the texts of the tokens with the best logits. */
  scores: { logits: Float32Array; pieces: Piece[]; first: number; layers: Float32Array[][] };
}

export type ToWorker = { number: number; question: Question } | { stop: true };
export type FromWorker =
  | { number: number; answer: Answers[keyof Answers] }
  /** The text that each token after the prompt adds. */
  | { number: number; kept: string[] }
  | { number: number; token: GeneratedToken; certain: number }
  | { number: number; error: string };
