import { describe, expect, it } from "vitest";
import { lettered, MARK, MOST_LETTERS } from "@/math/lettered";

describe("letters of a mini", () => {
  it("keeps letters whole", () => {
    const { letters, texts, cut } = lettered("ক্ষমা মা");
    expect(letters).toEqual([MARK, "ক্ষ", "মা", " "]);
    expect(texts).toEqual([[0, 1, 2, 3, 2, 0]]);
    expect(cut).toBe(false);
  });

  it("says when it cuts", () => {
    expect(lettered("ক".repeat(MOST_LETTERS + 1)).cut).toBe(true);
    expect(lettered("ক\nখ\nগ")).toMatchObject({ cut: true, texts: [[0, 1, 0], [0, 2, 0]] });
    expect(lettered("  \n ").texts).toEqual([]);
  });
});
