import { describe, expect, it } from "vitest";
import { gradeCell } from "@/math/grading";
import { points } from "@/math/points";
import cases from "./data/typed.json";

describe("answers as one types them", () => {
  it.each(cases.cells)("$typed for $value is $verdict", ({ typed, value, verdict, slack }) => {
    const wanted = value === "-inf" ? -Infinity : Number(value);
    expect(gradeCell(typed, [wanted], slack ?? 0).verdict).toBe(verdict === "too coarse" ? "coarse" : verdict);
  });

  it("takes any of several values, the best of them", () => {
    expect(gradeCell("0.262", [0.2616, 0.2619], 0).verdict).toBe("right");
    expect(gradeCell("0.3", [0.2616, 0.5], 0).verdict).toBe("coarse");
  });
});

describe("points", () => {
  it.each(cases.points)("$points after $wrong wrong and $hints hints", (each) => {
    expect(points(each.wrong, each.hints, each.shown)).toBe(each.points);
  });
});
