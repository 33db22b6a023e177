/** The data of the model card on the page: known figures, and the model's own card if it has one. */

export interface Card {
  parameters: number;
  tokenizer: string;
  license: string | null;
  bits_per_byte: number | null;
  /** Number of training tokens. */
  tokens_read: number | null;
  data: string | null;
  /** Markdown. */
  own: string;
}

export type Block =
  | { kind: "heading"; text: string }
  | { kind: "list"; items: string[] }
  | { kind: "table"; head: string[]; rows: string[][] }
  | { kind: "text"; text: string };

const cells = (line: string) => line.replace(/^\||\|$/g, "").split("|").map((cell) => plain(cell.trim()));
const plain = (text: string) => text.replace(/\*\*|`/g, "");

/** Render the Markdown that cards use: headings, lists, tables, paragraphs. The first heading is omitted. */
export function blocksOf(markdown: string): Block[] {
  const body = markdown.replace(/^---\n[\s\S]*?\n---\n/, "").replace(/^# .*\n/, "");
  return body
    .split(/\n\s*\n/)
    .map((block) => block.trim())
    .filter((block) => block !== "")
    .map((block): Block => {
      const lines = block.split("\n");
      if (block.startsWith("#")) return { kind: "heading", text: plain(block.replace(/^#+\s*/, "")) };
      if (block.startsWith("|")) {
        const [head = "", , ...rows] = lines;
        return { kind: "table", head: cells(head), rows: rows.map(cells) };
      }
      if (block.startsWith("- ")) return { kind: "list", items: block.replace(/^- /, "").split(/\n- /).map((item) => plain(item.replace(/\s*\n\s*/g, " "))) };
      return { kind: "text", text: plain(lines.map((line) => line.trim()).join(" ")) };
    });
}
