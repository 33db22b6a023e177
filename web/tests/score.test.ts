import { describe, expect, it } from "vitest";
import { checksum, crc32, parseScore, regrade, sizeOf, type ScoreFile } from "@/math/score";
import { fromTold } from "@/math/sheet";
import file from "./data/score.json";
import workshop from "./data/workshop.json";

const blank = fromTold(workshop.steps);
const told = file as ScoreFile;

describe("a score file", () => {
  it("is graded again, as the library does", () => {
    const found = regrade(told, blank);
    expect([found.points, found.possible, found.refused, found.checksumFits]).toEqual([30, 288, ["V[1,1]"], true]);
    expect(found.steps.find((step) => step.name === "K")).toEqual({ name: "K", right: 1, shown: 1, cells: 6, points: 4 });
  });

  it("shows when it was changed", () => {
    const changed = { ...told, points: 99 };
    expect(regrade(changed, blank).checksumFits).toBe(false);
    expect(checksum(told)).toBe(told.checksum);
  });

  it("is read, or refused", () => {
    expect(parseScore(JSON.stringify(told))?.name).toBe(told.name);
    expect([parseScore("{"), parseScore("{}"), parseScore('{"kind":"kotha-score","version":1,"answers":[1],"given":{}}')]).toEqual([null, null, null]);
    expect(sizeOf(told)).toBe("3x4x2");
    expect(sizeOf({ ...told, given: {} })).toBe(null);
  });

  it("has a checksum that others know", () => {
    expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
  });
});
