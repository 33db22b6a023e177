import { describe, expect, it } from "vitest";
import { diagnose } from "@/math/diagnosis";
import { readCell } from "@/math/grading";
import { compute, flow, matricesOf, reads, written, type Step } from "@/math/sheet";
import { arithmetic, formula } from "@/math/worked";
import workshop from "./data/workshop.json";

const told = workshop.steps.map((step): Step => ({ ...step, values: step.values.map((row) => row.map((value) => value ?? -Infinity)) }));
const truth = matricesOf(told);
const step = (name: string): Step => told.find((each) => each.name === name) as Step;

/** What is said of an answer. */
function said(name: string, row: number, column: number, typed: string): string[] {
  const read = readCell(typed);
  if (read === null) throw new Error(`${typed} is no number`);
  const slack = /^([QKV]|products)$/.test(name) ? 0 : 0.0005;
  return diagnose(read, typed, told, step(name), [truth], row - 1, column - 1, slack).map((each) => each.name);
}

describe("the sheet", () => {
  it("computes what the library computes", () => {
    for (const each of told.filter((one) => one.operation !== null)) {
      each.values.forEach((line, r) =>
        line.forEach((value, c) => {
          if (value === -Infinity) expect(compute(each, truth, r, c)).toBe(value);
          else expect(compute(each, truth, r, c)).toBeCloseTo(value, 12);
        }),
      );
    }
  });

  it("flows when a given number changes, and only below it", () => {
    const flown = matricesOf(flow(told, { "W_Q[1,1]": 0.9 }));
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
  const value = (name: string, row: number, column: number): number => truth[name]?.[row - 1]?.[column - 1] ?? NaN;
  const power = (row: number, column: number): number => Math.exp(value("scores", row, column));

  it.each([
    ["another matrix", "Q", 1, 2, String(value("K", 1, 2)), "otherMatrix"],
    ["the column summed", "Q", 1, 1, "0.7", "summedColumn"],
    ["the row summed", "Q", 1, 1, "2.5", "summedRow"],
    ["a product missing", "Q", 1, 2, "0.52", "missing"],
    ["stopped early", "Q", 1, 2, "0.33", "stopped"],
    ["the sign", "Q", 1, 2, "-0.57", "sign"],
    ["the point", "Q", 1, 2, "5.7", "point"],
    ["another row", "Q", 1, 2, "0.34", "otherRow"],
    ["a term of a typed sum", "Q", 1, 2, "1.0×0.2+0.5×0.3+0.2×0.4+0.8×0.3", "term"],
    ["K not turned", "products", 1, 2, String(0.37 * value("K", 1, 2) + 0.57 * value("K", 2, 2)), "notTurned"],
    ["no root", "scores", 1, 1, String(value("products", 1, 1)), "noRoot"],
    ["d_k for its root", "scores", 2, 1, (value("products", 2, 1) / 2).toFixed(4), "widthForRoot"],
    ["mask forgotten", "masked", 1, 2, value("scores", 1, 2).toFixed(4), "maskForgotten"],
    ["0 for the hidden", "masked", 1, 2, "0", "maskZero"],
    ["hidden what may be seen", "masked", 2, 1, "-999", "maskedTooMuch"],
    ["e forgotten", "powers", 2, 1, value("scores", 2, 1).toFixed(4), "noE"],
    ["e to 0 for the hidden", "powers", 1, 3, "1", "hiddenOne"],
    ["a sum without the mask", "sums", 1, 1, (power(1, 1) + power(1, 2) + power(1, 3)).toFixed(4), "maskForgotten"],
    ["weights without the mask", "weights", 1, 1, (power(1, 1) / (power(1, 1) + power(1, 2) + power(1, 3))).toFixed(4), "maskForgotten"],
    ["softmax down the column", "weights", 2, 1, (power(2, 1) / (power(1, 1) + power(2, 1) + power(3, 1))).toFixed(4), "softmaxDown"],
    ["softmax without e", "weights", 3, 1, (value("scores", 3, 1) / (value("scores", 3, 1) + value("scores", 3, 2) + value("scores", 3, 3))).toFixed(4), "noE"],
    ["not divided", "weights", 3, 2, power(3, 2).toFixed(4), "notDivided"],
  ] as const)("%s", (_, name, row, column, typed, mistake) => {
    expect(said(name, row, column, typed)).toContain(mistake);
  });

  it("names nothing where nothing fits", () => {
    expect(said("Q", 1, 2, "0.61234")).toEqual([]);
  });

  it("names at most two", () => {
    expect(said("scores", 1, 1, "0.2").length).toBeLessThanOrEqual(2);
  });
});
