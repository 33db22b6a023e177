import { describe, expect, it } from "vitest";
import { dodge, range, smooth } from "@/math/curves";

describe("curves", () => {
  it("smooth a constant to itself, and keep the first value", () => {
    for (const value of smooth([3, 3, 3, 3], 0.99)) expect(value).toBeCloseTo(3, 12);
    expect(smooth([5, 1], 0.9)[0]).toBeCloseTo(5, 12);
  });

  it("leave gaps as gaps, and everything where nothing is smoothed", () => {
    expect(smooth([1, null, 2], 0)).toEqual([1, null, 2]);
  });

  it("know what is to be seen", () => {
    const seen = range([[1, null, 3]]);
    expect(seen?.[0]).toBeLessThan(1);
    expect(seen?.[1]).toBeGreaterThan(3);
    expect(range([[null]])).toBeNull();
  });

  it("keep labels apart", () => {
    expect(dodge([10, 11, 40], 14)).toEqual([10, 24, 40]);
  });
});
