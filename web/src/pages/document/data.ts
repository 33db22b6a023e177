/** The data that Python puts into a document (`kotha/report/document.py`): blocks, and the Bangla of their messages. */
import type { Message, Templates } from "@/words/message";

export type Text = string | Message;
export interface DrawnLine {
  name: Text;
  points: [number, number | null][];
  colour: number;
  look: "plain" | "smoothed" | "dots" | "faint";
}
export interface CurvesBlock {
  kind: "curves";
  title: Text;
  x: Text;
  y: Text;
  lines: DrawnLine[];
  levels: [number, Text][];
  marker: [number, Text] | null;
  caption: Text[];
  log_y: boolean;
  from_zero: boolean;
}
export interface TableBlock {
  kind: "table";
  title: Text;
  header: Text[];
  cells: Text[][];
  remarks: Text[];
  /** Row, column, and the kind of cell: best, worst, words. */
  marks: [number, number, string][];
}
export interface MatrixBlock {
  kind: "confusion";
  corner: Text;
  columns: string[];
  rows: string[];
  cells: string[][];
  shares: number[][];
}
export type Block =
  | { kind: "heading"; text: Text }
  | { kind: "paragraph"; text: Text | Text[]; note: boolean }
  | { kind: "headline"; figures: [string, Text][] }
  | { kind: "settings"; pairs: [string, Text][] }
  | { kind: "quote"; text: string; label: Text; given: string }
  | { kind: "pieces"; pieces: [string, boolean][] }
  | { kind: "links"; links: [string, Text, Text][] }
  | { kind: "code"; text: string; label: Text }
  | { kind: "folded"; summary: Text; blocks: Block[] }
  | { kind: "columns"; columns: Block[][] }
  | CurvesBlock
  | TableBlock
  | MatrixBlock;

export interface PageData {
  data: { title: Text; lead: Text[]; blocks: Block[]; footer: Text[] };
  bangla: Templates;
}
