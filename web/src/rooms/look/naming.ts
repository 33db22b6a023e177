/** Display names for the names of the library. */
import words from "@words/look.json";
import { phrases } from "@/words/index.svelte";
import { named, wordOf } from "@/math/sites";
import type { Piece } from "./looking.svelte";

export const say = phrases(words);
type Key = keyof typeof words;

const MATRICES: Record<string, string> = {
  "query.weight": "W_Q", "key.weight": "W_K", "value.weight": "W_V", "output.weight": "W_O",
  "query.bias": "b_Q", "key.bias": "b_K", "value.bias": "b_V", "output.bias": "b_O",
  "up.weight": "W_up", "gate.weight": "W_gate", "down.weight": "W_down",
  "up.bias": "b_up", "gate.bias": "b_gate", "down.bias": "b_down",
  "head.weight": "W_head", "head.bias": "b_head", "tokens.weight": "E", "places.weight": "P", "segments.weight": "S",
  "transform.weight": "W_t", "transform.bias": "b_t", "patches.projection.weight": "W_patch", "patches.projection.bias": "b_patch",
};

function has(key: string): key is Key {
  return key in words;
}

/** A short name: Q, softmax, W_Q. */
export function shortName(site: string): string {
  const key = `short.${wordOf(site)}`;
  if (has(key)) return say(key);
  const { own } = named(site);
  return MATRICES[own] ?? MATRICES[site] ?? (own.endsWith("weight") ? "γ" : own.endsWith("bias") ? "β" : own);
}

/** A description in a phrase. */
export function longName(site: string): string {
  const key = `site.${wordOf(site)}`;
  if (has(key)) return say(key);
  return site.endsWith("bias") ? say("site.bias") : say("site.weight");
}

export function layerName(layer: string): string {
  const [stack = "", number = "0"] = layer.split(".");
  const n = Number(number);
  if (stack === "encoder") return say("layer.encoder", { n });
  return stack === "decoder" ? say("layer.decoder", { n }) : say("layer", { n });
}

/** The name of an attention module by its layer; in a decoder, which has two in each layer, also by its part. */
export function attentionName(attention: string): string {
  const { layer, part } = named(attention);
  const name = layerName(layer ?? "");
  return layer?.startsWith("decoder") ? `${name}: ${partName(part ?? "")}` : name;
}

export function layerNumber(layer: string): number {
  return Number(layer.split(".")[1] ?? 0);
}

export function partName(part: string): string {
  return part === "cross" ? say("part.cross") : part === "feedforward" ? say("part.feedforward") : say("part.attention");
}

export function lineName(line: string): string {
  const key = `line.${line}`;
  return has(key) ? say(key) : line;
}

export function kindName(kind: string): string {
  const key = `kind.${kind}`;
  return has(key) ? say(key) : kind;
}

export function givesName(gives: string): string {
  const key = `gives.${gives}`;
  return has(key) ? say(key) : gives;
}

/** The label of a piece at a row or a column: a patch by its position alone. */
export function pieceLabel(piece: Piece | undefined): string {
  if (piece === undefined || piece.id != null) return piece?.text ?? "";
  if (piece.text === "class") return say("image.class.short");
  const [row = "1", column = "1"] = piece.text.split(",");
  return say("image.patch.short", { row: Number(row), column: Number(column) });
}

/** The label of a piece for screen readers: a patch by its position. */
export function pieceName(piece: Piece | undefined): string {
  if (piece === undefined) return "";
  if (piece.id != null) return piece.text;
  if (piece.text === "class") return say("image.class");
  const [row = "1", column = "1"] = piece.text.split(",");
  return say("image.patch", { row: Number(row), column: Number(column) });
}
