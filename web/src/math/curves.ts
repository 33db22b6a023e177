/** Curves for the eye: smoothing that bends nothing, and the window that one looks at. */

/** A running mean that forgets by `weight`, debiased: the first value is itself, and a constant stays constant. */
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

/** The lowest and highest of what is there, with a little room; null where nothing is. */
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

/** Heights at which labels can stand without touching: pushed apart, in their order. */
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
