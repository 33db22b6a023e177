import { describe, expect, it } from "vitest";
import { rateShare } from "@/math/schedule";

// As printed by kotha.training.optim.schedule.learning_rate_share for steps=100, warmup_steps=10, decay_steps=40, floor=0.02.
const KNOWN: [number, number][] = [[0, 0], [5, 0.5], [10, 1], [59, 1], [60, 1], [80, 0.51], [99, 0.0445], [100, 0.02]];

describe("schedule", () => {
  it.each(KNOWN)("at step %i is %f of the largest", (step, share) => {
    expect(rateShare(step, { steps: 100, warmup: 10, decay: 40, floor: 0.02 })).toBeCloseTo(share, 12);
  });
});
