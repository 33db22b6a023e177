import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { diagnose } from "@/math/diagnosis";
import { readCell } from "@/math/grading";
import { compute, flow, fromData, key, matricesOf, reads, type Step, type StepData } from "@/math/sheet";
import { arithmetic, formula } from "@/math/worked";

const papersData = JSON.parse(readFileSync(new URL("data/papers.json", import.meta.url), "utf-8")) as Record<string, { steps: StepData[] }>;
const papers = Object.entries(papersData).map(([name, { steps }]): [string, Step[]] => [name, fromData(steps)]);

describe.each(papers)("the sheet %s", (_, steps) => {
  const given = matricesOf(steps);
  const asked = steps.filter((step) => step.operation !== null);

  test.each(asked.map((step): [string, Step] => [step.name, step]))("%s is what the library computes", (_, step) => {
    step.values.forEach((line, r) =>
      line.forEach((value, c) => {
        const made = compute(step, given, r, c);
        if (value === -Infinity) expect(made).toBe(-Infinity);
        else expect(Math.abs(made - value)).toBeLessThan(1e-12 * Math.max(1, Math.abs(value)));
        expect(arithmetic(step, given, r, c, 4)).not.toMatch(/NaN|undefined/);
        for (const lit of reads(step, given, r, c)) expect(given[lit.name]?.[lit.row ?? 0]?.[lit.column ?? 0]).toBeDefined();
      }),
    );
    expect(formula(step)).not.toMatch(/undefined/);
  });
});

test("another number flows through both heads, W_O and the norms to the guess", () => {
  const steps = papers.find(([name]) => name === "block")?.[1] ?? [];
  const names = new Set(steps.filter((step, i) => JSON.stringify(step.values) !== JSON.stringify(flow(steps, { [key("X", 0, 0)]: 2 })[i]?.values)).map((step) => step.name));
  for (const name of ["Q_1", "weights_2", "joined", "attended", "normed_2", "chances"]) expect(names).toContain(name);
  expect(names).not.toContain("W_O");
});

test.each([
  ["joined", 0, 0, "otherHead"],
  ["sum_1", 0, 0, "residualForgotten"],
  ["mean_1", 0, 0, "meanNotDivided"],
  ["guess", 0, 0, "countedFromZero"],
  ["weights_2", 2, 1, "noRoot"],
  ["Q_2", 0, 1, "otherMatrix"],
])("a mistake in %s[%i,%i] is named %s", (name, r, c, mistake) => {
  const steps = papers.find(([paper]) => paper === "block")?.[1] ?? [];
  const given = matricesOf(steps);
  const step = steps.find((each) => each.name === name) as Step;
  const line = (of: string, row = r): readonly number[] => given[of]?.[row] ?? [];
  const softmax = (scores: readonly number[]): number[] => scores.map((score) => Math.exp(score) / scores.reduce((sum, each) => sum + Math.exp(each), 0));
  const wrong: Record<string, number> = {
    otherHead: line("output_2")[c] ?? NaN,
    residualForgotten: line("attended")[c] ?? NaN,
    meanNotDivided: line("sum_1").reduce((sum, each) => sum + each, 0),
    countedFromZero: (line("guess")[0] ?? NaN) - 1,
    noRoot: softmax(line("products_2"))[c] ?? NaN,
    otherMatrix: compute({ ...step, operands: ["X", "W_Q_1"] }, given, r, c),
  };
  const text = (wrong[mistake] ?? NaN).toFixed(4);
  expect(diagnose(readCell(text)!, text, steps, step, [given], r, c, 0.0005).map((each) => each.name)).toContain(mistake);
});
