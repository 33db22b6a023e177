/** What a single file says of its model: written by `export/web`, read here. */

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
  /** Normalization after NFC: patterns with what each match becomes, in order. */
  rules: [string, string][];
  rounds: number;
  split: "words" | "qwen35" | "gpt2" | "characters" | null;
  /** How pieces are spelled: as text, as text with `<0xE0>` for single bytes, or in the byte alphabet. */
  spelling: "text" | "byte-fallback" | "byte-level";
  pieces: string[];
  /** Of a unigram: the log-probability of each piece. */
  scores: number[];
  /** Of a BPE: pairs, the first to merge first. */
  merges: [string, string][];
  /** Tokens that are found in a text before it is split, each whole. */
  added: [string, number][];
  unknown: number | null;
  special: number[];
  start: number | null;
  ends: number[];
}

/** An array among the weights: where it begins, in bytes. */
export interface ArrayPlace {
  name: string;
  type: "float32" | "int8";
  shape: number[];
  start: number;
}

export interface Description {
  name: string;
  model: ModelShape;
  vocabulary: Vocabulary;
  arrays: ArrayPlace[];
  /** Of all arrays together, unpacked. */
  bytes: number;
}
