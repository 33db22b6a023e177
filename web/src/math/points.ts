/** Points for a cell: the maximum on the first try, fewer with each wrong try and each hint, none if the step was shown. */

export const FULL = 4;
const LEAST = 1;
const MOST_LOST_BY_TRIES = 2;

export function points(wrong: number, hints: number, shown: boolean): number {
  if (shown) return 0;
  return Math.max(LEAST, FULL - Math.min(wrong, MOST_LOST_BY_TRIES) - hints);
}
