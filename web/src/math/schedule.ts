/** The learning rate at each step, as in the library's `learning_rate_share` for the schedule `stable`. */

export interface Schedule {
  steps: number;
  warmup: number;
  decay: number;
  floor: number;
}

/** Share of the peak learning rate at a step, counted from 0: warm-up, constant, linear decay. */
export function rateShare(step: number, schedule: Schedule): number {
  if (step < schedule.warmup) return step / schedule.warmup;
  const height = Math.min(1, Math.max(0, schedule.steps - step) / Math.max(1, schedule.decay));
  return schedule.floor + (1 - schedule.floor) * height;
}
