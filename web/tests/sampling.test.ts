import { describe, expect, it } from "vitest";
import cases from "./cases/sampling.json";
import { ranked, spread, tint, untouched, isFilteredOut, type Sampling } from "@/math/sampling";

const PLAIN: Sampling = { temperature: 1, top_k: null, top_p: null, min_p: null, repetition_penalty: null };

describe("what is drawn from", () => {
  // Made by the library; tests/generation/test_plain.py holds it to the same file.
  it.each(cases.map((each, place) => ({ ...each, place })))("is what the library draws from: $place", ({ logits, settings, seen, kept, chances }) => {
    const found = spread(Float32Array.from(logits), settings, seen, logits.length);
    expect(found.kept).toBe(kept.length);
    expect([...found.order.subarray(0, found.kept)]).toEqual(kept);
    chances.forEach((chance, place) => expect(found.chances[place]).toBeCloseTo(chance, 9));
    expect([...found.chances.subarray(found.kept)].every((chance) => chance === 0)).toBe(true);
  });

  it("says what cut a token, the first that did", () => {
    const logits = Float32Array.from([5, 4, 3, 2, 1, 0]);
    const found = spread(logits, { ...PLAIN, top_k: 4, top_p: 0.9, min_p: 0.2 }, []);
    expect(found.kept).toBe(2);
    expect([0, 1, 2, 3, 4, 5].map(found.cutBy)).toEqual([null, null, "min_p", "top_p", "top_k", "top_k"]);
    expect(spread(logits, { ...PLAIN, temperature: 0 }, []).cutBy(1)).toBe("greedy");
  });

  it("knows what the model itself gave to what is left", () => {
    const logits = Float32Array.from([2, 1, 0]);
    const own = untouched(logits);
    expect(spread(logits, { ...PLAIN, temperature: 0.3, top_k: 2 }, []).share).toBeCloseTo(own(0) + own(1), 12);
    expect(own(0) + own(1) + own(2)).toBeCloseTo(1, 12);
  });

  it("ranks the first of equals first", () => {
    expect([...ranked([1, 3, 3, 0, 3], 2)]).toEqual([1, 2]);
  });
});

describe("what settings would have cut", () => {
  const token = { probability: 0.1, rank: 3, above: 0.7, best: 0.4 };

  it("is known for top-k and min-p", () => {
    expect(isFilteredOut(token, { ...PLAIN, top_k: 2 })).toBe("top_k");
    expect(isFilteredOut(token, { ...PLAIN, top_k: 3 })).toBeNull();
    expect(isFilteredOut(token, { ...PLAIN, min_p: 0.3 })).toBe("min_p");
    expect(isFilteredOut(token, { ...PLAIN, min_p: 0.3, temperature: 2 })).toBeNull(); // the square root of a quarter
    expect(isFilteredOut(token, { ...PLAIN, temperature: 0 })).toBe("greedy");
  });

  it("is told of top-p only where it is known", () => {
    expect(isFilteredOut(token, { ...PLAIN, top_p: 0.6 })).toBe("top_p");
    expect(isFilteredOut(token, { ...PLAIN, top_p: 0.6, temperature: 0.8 })).toBeNull();
  });
});

it("tints the less likely deeper", () => {
  expect([1, 0.5, 0.3, 0.1, 0.02, 0.002, 0.0001].map(tint)).toEqual([0, 0, 1, 2, 3, 4, 5]);
});
