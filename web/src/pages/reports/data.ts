/** The data that Python puts into a report's page, with the component that shows it. */
import type { Page } from "@/words/localize";
import type { Schemas } from "@/api/client";
import type { MapDot } from "@/parts/WordMap.svelte";

export interface WordsData {
  /** The name of the model. */
  name: string;
  dots: MapDot[];
  /** The share of the variance that the two axes of the map explain. */
  shares: [number, number];
  width: number;
  centred: boolean;
  /** The requested words, with their neighbours. */
  words: NonNullable<Schemas["EmbeddingsMap"]["word"]>[];
}

type Figures = Pick<Schemas["TokenizerCard"], "kind" | "vocab_size" | "words" | "tokens_per_word" | "bytes_per_token" | "unknown_rate" | "split_aksharas">;

export interface TokenizersData {
  source: string;
  cards: (Figures & { name: string; documents: number; round_trip: number; pieces: { id: number; text: string; part: boolean; cut: boolean; bytes: number }[] })[];
}

export interface ComparedData extends Pick<Schemas["Comparison"], "rows" | "best" | "reasons"> {
  /** The file on which all were measured; null if each has its own. */
  text: string | null;
}

export interface JudgingData {
  /** The identification that the returned file must contain. */
  format: string;
  pairs_fingerprint: string;
  pairs: { id: string; prompt: string; left: string; right: string }[];
}

export type PageData = Page<{ words: WordsData; tokenizers: TokenizersData; compare: ComparedData; judge: JudgingData }>;
