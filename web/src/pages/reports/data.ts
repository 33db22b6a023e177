/** What Python puts into a report's page: which component shows it, and its data. */
import type { Page } from "@/words/localize";
import type { Schemas } from "@/api/client";
import type { MapDot } from "@/parts/WordMap.svelte";

export interface WordsData {
  /** Whose words. */
  name: string;
  dots: MapDot[];
  /** How much of all differences the two directions of the map show. */
  shares: [number, number];
  width: number;
  centred: boolean;
  /** Those that were asked for, with their neighbours. */
  words: NonNullable<Schemas["EmbeddingsMap"]["word"]>[];
}

type Figures = Pick<Schemas["TokenizerCard"], "kind" | "vocab_size" | "words" | "tokens_per_word" | "bytes_per_token" | "unknown_rate" | "split_aksharas">;

export interface TokenizersData {
  source: string;
  cards: (Figures & { name: string; documents: number; round_trip: number; pieces: { id: number; text: string; part: boolean; cut: boolean; bytes: number }[] })[];
}

export interface ComparedData extends Pick<Schemas["Comparison"], "rows" | "best" | "reasons"> {
  /** The file that all were measured on; null where each has its own. */
  text: string | null;
}

export interface JudgingData {
  /** What the file that comes back must say of itself. */
  format: string;
  pairs_fingerprint: string;
  pairs: { id: string; prompt: string; left: string; right: string }[];
}

export type PageData = Page<{ words: WordsData; tokenizers: TokenizersData; compare: ComparedData; judge: JudgingData }>;
