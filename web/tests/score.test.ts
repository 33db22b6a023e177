import { describe, expect, it } from "vitest";
import { parseScore, regrade, sizeOf, type ScoreFile } from "@/math/score";
import { fromData } from "@/math/sheet";
import file from "./data/score.json";
import workshop from "./data/workshop.json";

const blank = fromData(workshop.steps);
const scoreFile = file as ScoreFile;

describe("a score file", () => {
  it("is graded again, as the library does", () => {
    const found = regrade(scoreFile, blank);
    expect([found.points, found.possible, found.refused]).toEqual([30, 288, ["V[1,1]"]]);
    expect(found.steps.find((step) => step.name === "K")).toEqual({ name: "K", right: 1, shown: 1, cells: 6, points: 4 });
  });

  it("is worth what its answers are, whatever it says", () => {
    const changed = { ...scoreFile, points: 99, answers: scoreFile.answers.map((each, n) => (n === 0 ? { ...each, tries: ["0.38"] } : each)) };
    expect(regrade(changed, blank).refused).toEqual(["Q[1,1]", "V[1,1]"]);
  });

  it("takes one's own numbers in later steps", () => {
    const given = (typed: string): ScoreFile => ({
      ...scoreFile,
      answers: [
        { cell: "products[1,1]", tries: [typed], hints: 0, verdict: "right", points: 4 },
        { cell: "scores[1,1]", tries: ["0.29698"], hints: 0, verdict: "right", points: 4 },
      ],
    });
    expect(regrade(given("0.42"), blank).refused).toEqual([]); // 0.42 / √2
    expect(regrade(given("0.4218"), blank).refused).toEqual(["scores[1,1]"]);
  });

  it("is read, or refused", () => {
    expect(parseScore(JSON.stringify(scoreFile))?.name).toBe(scoreFile.name);
    expect([parseScore("{"), parseScore("{}"), parseScore('{"kind":"kotha-score","version":1,"answers":[1],"given":{}}')]).toEqual([null, null, null]);
    expect(sizeOf(scoreFile)).toBe("3x4x2");
    expect(sizeOf({ ...scoreFile, given: {} })).toBe(null);
  });
});
