import { describe, expect, it } from "vitest";
import { begin, layout, learn, sizeOf } from "@/math/mini";
import { Training } from "@/math/training";
import torch from "./data/mini.json";

const places = layout(torch.config);
const weights = new Float64Array(places.flatMap(({ name }) => torch.weights[name as keyof typeof torch.weights]));

describe("a mini, against torch", () => {
  const found = learn(torch.config, weights, torch.texts);

  it("has torch's weights in torch's order", () => {
    expect(places.map((place) => place.name)).toEqual(Object.keys(torch.weights));
    expect(weights.length).toBe(sizeOf(places));
  });

  it("has torch's loss and probabilities", () => {
    expect(Math.abs(found.loss - torch.loss)).toBeLessThan(1e-12);
    torch.foretold.forEach((rows, n) => rows.flat().forEach((share, i) => expect(Math.abs((found.foretold[n]?.[i] ?? NaN) - share)).toBeLessThan(1e-12)));
  });

  it.each(places.map((place) => place.name))("has torch's gradients of %s", (name) => {
    const place = places.find((each) => each.name === name);
    const theirs = torch.gradients[name as keyof typeof torch.gradients];
    theirs.forEach((each, i) => expect(Math.abs((found.gradient[(place?.start ?? 0) + i] ?? NaN) - each)).toBeLessThan(1e-6));
    expect(Math.max(...theirs.map(Math.abs))).toBeGreaterThan(1e-6);
  });

  it("has the slope that one sees by taking a small step", () => {
    for (const at of [0, 33, 150, 400]) {
      const [up, down] = [weights.slice(), weights.slice()];
      up[at]! += 1e-5;
      down[at]! -= 1e-5;
      const slope = (learn(torch.config, up, torch.texts).loss - learn(torch.config, down, torch.texts).loss) / 2e-5;
      expect(slope).toBeCloseTo(found.gradient[at] ?? NaN, 6);
    }
  });
});

describe("training", () => {
  const made = (method: "adam" | "plain"): Training => new Training(torch.config, torch.texts, 3, method === "adam" ? 0.03 : 0.5, method);

  it.each(["adam", "plain"] as const)("learns its texts by heart (%s)", (method) => {
    const training = made(method);
    const before = training.look().loss;
    for (let step = 0; step < 300; step += 1) training.step();
    expect(before).toBeGreaterThan(1.5);
    expect(training.look().loss).toBeLessThan(0.5);
  });

  it("goes back to the very numbers", () => {
    const training = made("adam");
    training.step();
    const then = training.look();
    training.step();
    training.step();
    expect(training.back() && training.back()).toBe(true);
    expect(training.look()).toEqual(then);
    training.back();
    expect(training.back()).toBe(false);
  });

  it("adds to each weight what it says", () => {
    const training = made("adam");
    const { weights: before, update } = training.look();
    training.step();
    training.look().weights.forEach((each, i) => expect(each).toBeCloseTo((before[i] ?? 0) + (update[i] ?? 0), 14));
  });

  it("begins the same for the same seed", () => {
    expect(begin(torch.config, 5)).toEqual(begin(torch.config, 5));
    expect(begin(torch.config, 5)).not.toEqual(begin(torch.config, 6));
  });
});
