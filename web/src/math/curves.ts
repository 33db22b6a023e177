/** Curves for display: smoothing, and the visible range. */

/** A debiased exponential moving average with decay `weight`: the first value and constants do not change. */
export function smooth(values: readonly (number | null)[], weight: number): (number | null)[] {
  let sum = 0;
  let total = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return weight === 0 ? value : sum / total;
  });
}

/** The minimum and maximum of the values, with a margin; null if there are none. */
export function range(series: readonly (readonly (number | null)[])[]): [number, number] | null {
  let [low, high] = [Infinity, -Infinity];
  for (const values of series)
    for (const value of values)
      if (value !== null && Number.isFinite(value)) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
  if (low > high) return null;
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - room, high + 2 * room];
}

/** Heights at which labels do not overlap, in the same order. */
export function dodge(heights: readonly number[], gap: number): number[] {
  const order = heights.map((_, i) => i).sort((a, b) => (heights[a] ?? 0) - (heights[b] ?? 0));
  const placed = [...heights];
  let last = -Infinity;
  for (const i of order) {
    last = Math.max(placed[i] ?? 0, last + gap);
    placed[i] = last;
  }
  return placed;
}
