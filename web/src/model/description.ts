/** The description of the model in a single-file page: written by `export/web`, read here. */

export interface ModelShape {
  d_model: number;
  n_heads: number;
  n_kv_heads: number;
  d_head: number;
  d_ff: number;
  activation: "relu" | "gelu" | "gelu-tanh" | "swiglu";
  norm: "layer" | "rms";
  norm_order: "pre" | "post";
  norm_eps: number;
  qk_norm: boolean;
  n_layers: number;
  final_norm: boolean;
  removed_heads: string[];
  vocab_size: number;
  context_length: number;
  positions: "learned" | "sinusoidal" | "sinusoidal-halves" | "rotary" | "none";
  rotary_base: number;
}

export interface Vocabulary {
  kind: "unigram" | "bpe" | "words";
  nfc: boolean;
  /** Normalization after NFC: patterns with their replacements, in order. */
  rules: [string, string][];
  rounds: number;
  split: "words" | "qwen35" | "gpt2" | "characters" | null;
  /** The spelling of pieces: as text, as text with `<0xE0>` for single bytes, or in the byte alphabet. */
  spelling: "text" | "byte-fallback" | "byte-level";
  pieces: string[];
  /** For unigram: the log-probability of each piece. */
  scores: number[];
  /** For BPE: pairs in the order of merging. */
  merges: [string, string][];
  /** Tokens that are matched in a text before it is split. */
  added: [string, number][];
  unknown: number | null;
  special: number[];
  start: number | null;
  ends: number[];
}

/** An array of weights and its offset in bytes. */
export interface ArrayPlace {
  name: string;
  type: "float32" | "int8";
  shape: number[];
  start: number;
}

export interface Description {
  /** The beginning of a text in the model's own language; null: the usual one in the page's language. */
  opening?: string | null;
  /** The model's own language, as an ISO 639 code. */
  language?: string | null;
  name: string;
  model: ModelShape;
  vocabulary: Vocabulary;
  arrays: ArrayPlace[];
  /** Size of all arrays together, unpacked. */
  bytes: number;
}
