/** The sign of a value among others in a column: ▲ for the best one, ▽ for the worst. Values that look equal have the same sign. */
export function sign<T>(one: T, all: readonly T[], value: (each: T) => number, show: (each: T) => string, more: boolean): "" | "▲" | "▽" {
  const sorted = [...all].sort((a, b) => value(a) - value(b));
  const [low, high] = [show(sorted[0] ?? one), show(sorted.at(-1) ?? one)];
  const shown = show(one);
  if (low === high) return "";
  if (shown === (more ? high : low)) return "▲";
  return shown === (more ? low : high) ? "▽" : "";
}
