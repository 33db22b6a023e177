import { describe, expect, it } from "vitest";
import { bytesOf, codePoints, shown } from "@/math/letters";

describe("letters", () => {
  it("show what cannot stand alone", () => {
    expect(shown("া")).toBe("\u25ccা");
    expect(shown(" ক")).toBe("␣ক");
  });

  it("count cuts inside, and none at a letter's end", () => {
    const signs = codePoints(["ক্ষ", "মা"]);
    expect(signs.map((each) => each.cut)).toEqual([true, true, false, true, false]);
    expect(bytesOf(["ক"]).map((each) => each.text)).toEqual(["E0", "A6", "95"]);
  });
});
