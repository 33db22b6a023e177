/** What a cell is worth: all of it at the first try, less with each wrong one and each hint, nothing for the worked step. */

export const FULL = 4;
const LEAST = 1;
const MOST_LOST_BY_TRIES = 2;

export function points(wrong: number, hints: number, shown: boolean): number {
  if (shown) return 0;
  return Math.max(LEAST, FULL - Math.min(wrong, MOST_LOST_BY_TRIES) - hints);
}
