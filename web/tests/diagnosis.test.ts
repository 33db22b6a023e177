import { describe, expect, it } from "vitest";
import { diagnose } from "@/math/diagnosis";
import { readCell } from "@/math/grading";
import { compute, flow, matricesOf, reads, written, type Step } from "@/math/sheet";
import { arithmetic, formula } from "@/math/worked";
import mistakes from "./data/mistakes.json";
import workshop from "./data/workshop.json";

const sheet = workshop.steps.map((step): Step => ({ ...step, values: step.values.map((row) => row.map((value) => value ?? -Infinity)) }));
const truth = matricesOf(sheet);
const step = (name: string): Step => sheet.find((each) => each.name === name) as Step;

/** What is said of an answer. */
function namesOf(name: string, row: number, column: number, typed: string): string[] {
  const read = readCell(typed);
  if (read === null) throw new Error(`${typed} is no number`);
  const slack = /^([QKV]|products)$/.test(name) ? 0 : 0.0005;
  return diagnose(read, typed, sheet, step(name), [truth], row - 1, column - 1, slack).map((each) => each.name);
}

describe("the sheet", () => {
  it("computes what the library computes", () => {
    for (const each of sheet.filter((one) => one.operation !== null)) {
      each.values.forEach((line, r) =>
        line.forEach((value, c) => {
          if (value === -Infinity) expect(compute(each, truth, r, c)).toBe(value);
          else expect(compute(each, truth, r, c)).toBeCloseTo(value, 12);
        }),
      );
    }
  });

  it("flows when a given number changes, and only below it", () => {
    const flown = matricesOf(flow(sheet, { "W_Q[1,1]": 0.9 }));
    expect(flown.Q?.[0]?.[0]).toBeCloseTo(1.17);
    expect(flown.K).toEqual(truth.K);
    expect(flown.weights?.[2]?.[0]).not.toBeCloseTo(truth.weights?.[2]?.[0] ?? 0, 4);
  });

  it("knows what a cell is made of", () => {
    expect(reads(step("Q"), truth, 0, 1)).toEqual([{ name: "X", row: 0, column: null }, { name: "W_Q", row: null, column: 1 }]);
    expect(reads(step("products"), truth, 2, 1)).toEqual([{ name: "Q", row: 2, column: null }, { name: "K", row: 1, column: null }]);
    expect(reads(step("scores"), truth, 2, 1)).toEqual([{ name: "products", row: 2, column: 1 }, { name: "d_k", row: 0, column: 0 }]);
  });

  it("writes the arithmetic as on paper", () => {
    expect(arithmetic(step("Q"), truth, 0, 1, 4)).toBe("1.0×0.2 + 0.5×0.1 + 0.2×0.4 + 0.8×0.3");
    expect(arithmetic(step("scores"), truth, 0, 0, 4)).toMatch(/^0\.\d+ \/ √2$/);
    expect(formula(step("products"))).toBe("products = Q × Kᵀ");
    expect([0.5, -0.33333, 0.00207654, -Infinity, 1e-12].map((value) => written(value, 4))).toEqual(["0.5", "−0.3333", "0.002077", "−∞", "0.0"]);
  });
});

describe("mistakes are recognised by computing them", () => {
  // The library recognises the same ones (`course/exercises/mistakes.py`), by the same list.
  it.each(mistakes)("$about", ({ step: name, row, column, typed, mistake }) => {
    expect(namesOf(name, row, column, typed)).toContain(mistake);
  });

  it("a term of a typed sum", () => {
    expect(namesOf("Q", 1, 2, "1.0×0.2+0.5×0.3+0.2×0.4+0.8×0.3")).toContain("term");
  });

  it("names nothing where nothing fits", () => {
    expect(namesOf("Q", 1, 2, "0.61234")).toEqual([]);
  });

  it("names at most two", () => {
    expect(namesOf("scores", 1, 1, "0.2").length).toBeLessThanOrEqual(2);
  });
});
