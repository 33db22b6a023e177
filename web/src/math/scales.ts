/** Colour scales for numbers: two scales of nine stops, light and dark, and a readable text colour for each tint. */

export type Theme = "light" | "dark";
export type ScaleKind = "sequential" | "diverging";
export type Rgb = [number, number, number];

/** The stops of `tokens.css`; a test checks that they are equal. */
export const STOPS: Record<Theme, Record<ScaleKind, readonly string[]>> = {
  light: {
    sequential: ["#fdfcf8", "#dee1ca", "#b5c9a3", "#88b281", "#579b6b", "#358056", "#056642", "#004932", "#002f21"],
    diverging: ["#6b2801", "#a54d08", "#c7875a", "#e5bfa2", "#fcfaf7", "#a3d1dc", "#5aa4b6", "#02778b", "#014855"],
  },
  dark: {
    sequential: ["#191816", "#1f342d", "#275143", "#2f6f59", "#398f6f", "#52ad86", "#73cc9e", "#aae5bd", "#e4fbe7"],
    diverging: ["#fdce9b", "#dc9042", "#9c6333", "#5d3c25", "#1d1b1a", "#234c52", "#347e8a", "#49b4c6", "#9ce6f3"],
  },
};
const STEPS = 256;
const SAMPLE = 4000;
const FEW = 200;
const tables = new Map<string, Rgb[]>();

/** A scale and the number at its end. A diverging scale has zero in the middle. */
export interface Scale {
  kind: ScaleKind;
  /** The number at the end; for a diverging scale, the absolute value at both ends. */
  most: number;
}

/** A scale that ends at the largest absolute value. */
export function scaleFor(values: ArrayLike<number>, kind: ScaleKind): Scale {
  let most = 0;
  for (let i = 0; i < values.length; i += 1) {
    const size = Math.abs(values[i] as number);
    if (Number.isFinite(size) && size > most) most = size;
  }
  return { kind, most: most || 1 };
}

/** A scale for a picture of many numbers; a few outliers are clipped, so that the others can be distinguished. */
export function typicalScale(values: ArrayLike<number>, kind: ScaleKind): Scale {
  const sizes: number[] = [];
  const step = Math.max(1, Math.floor(values.length / SAMPLE));
  for (let i = 0; i < values.length; i += step) {
    const size = Math.abs(values[i] as number);
    if (Number.isFinite(size)) sizes.push(size);
  }
  if (sizes.length < FEW) return scaleFor(values, kind);
  sizes.sort((a, b) => a - b);
  return { kind, most: sizes[Math.floor(0.98 * (sizes.length - 1))] || scaleFor(values, kind).most };
}

/** The position of a number on the scale, from 0 to 1. */
export function position(value: number, scale: Scale): number {
  const share = Math.max(-1, Math.min(1, value / scale.most));
  return scale.kind === "diverging" ? (share + 1) / 2 : Math.max(0, share);
}

/** The tint of a number. */
export function tint(value: number, scale: Scale, theme: Theme): Rgb {
  const at = Math.round(position(Number.isFinite(value) ? value : 0, scale) * (STEPS - 1));
  return table(scale.kind, theme)[at] as Rgb;
}

/** Every stop of a scale. */
export function table(kind: ScaleKind, theme: Theme): Rgb[] {
  const name = `${kind} ${theme}`;
  let found = tables.get(name);
  if (found === undefined) {
    const stops = STOPS[theme][kind].map(parsed);
    found = Array.from({ length: STEPS }, (_, step) => between(stops, step / (STEPS - 1)));
    tables.set(name, found);
  }
  return found;
}

/** Black or white, whichever has more contrast with a tint. */
export function inkOn(colour: Rgb): "#000" | "#fff" {
  const light = luminance(colour);
  return (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) ? "#000" : "#fff";
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red} ${green} ${blue})`;
}

/** The tint of a number as background, and a readable text colour; neither if the number is masked or missing. */
export function painted(value: number | null | undefined, scale: Scale, theme: Theme): { background: string; color: string } {
  if (value == null || value === -Infinity) return { background: "", color: "" };
  const colour = tint(value, scale, theme);
  return { background: css(colour), color: inkOn(colour) };
}

/** The contrast ratio of two colours, as defined by WCAG. */
export function contrast(one: Rgb, other: Rgb): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((each) => {
    const share = each / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function parsed(hex: string): Rgb {
  const number = parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

function between(stops: Rgb[], share: number): Rgb {
  const at = share * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const [from, to] = [stops[low] as Rgb, stops[low + 1] as Rgb];
  return from.map((each, i) => Math.round(each + (at - low) * ((to[i] as number) - each))) as Rgb;
}
