import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { maskedText, toggled, wordsOf } from "../src/math/masking";
import { contrast, inkOn, position, scaleFor, STOPS, table } from "../src/math/scales";
import { above, inLayer, levelOf, named, pathOf } from "../src/math/sites";
import { sign } from "../src/math/marks";
import { around, placeWithin, pooled } from "../src/math/tiles";

describe("scales", () => {
  it("have the stops of the style sheet", () => {
    const [light = "", dark = ""] = readFileSync("src/styles/tokens.css", "utf8").split('data-theme="dark"');
    for (const [theme, sheet] of [["light", light], ["dark", dark]] as const) {
      for (const [kind, name] of [["sequential", "seq"], ["diverging", "div"]] as const) {
        STOPS[theme][kind].forEach((stop, i) => expect(sheet).toContain(`--${name}-${i}: ${stop}`));
      }
    }
  });
  it("carry ink that can be read on every tint", () => {
    for (const theme of ["light", "dark"] as const)
      for (const kind of ["sequential", "diverging"] as const)
        for (const colour of table(kind, theme)) {
          const ink = inkOn(colour) === "#000" ? 0 : 255;
          expect(contrast(colour, [ink, ink, ink])).toBeGreaterThanOrEqual(4.5);
        }
  });
  it("have zero in the middle, or at the start", () => {
    const diverging = scaleFor([-2, 1, Number.NEGATIVE_INFINITY], "diverging");
    expect([position(-2, diverging), position(0, diverging), position(2, diverging)]).toEqual([0, 0.5, 1]);
    expect(position(0.25, scaleFor([0.5], "sequential"))).toBe(0.5);
  });
});

describe("sites", () => {
  it("have a path that leads back to them", () => {
    for (const site of ["logits", "blocks.3.attention", "blocks.3.attention.scores", "blocks.0.attention_norm", "decoder.2.cross.query.weight", "tokens.source"]) {
      expect(levelOf(pathOf(site))).toEqual({ level: "matrix", site });
    }
  });
  it("have levels, and one above", () => {
    expect(levelOf([])).toEqual({ level: "model" });
    expect(levelOf(["blocks.3"])).toEqual({ level: "layer", layer: "blocks.3" });
    expect(levelOf(["blocks.3.attention"])).toEqual({ level: "part", layer: "blocks.3", part: "attention" });
    expect(above(["blocks.3.attention", "scores"])).toEqual(["blocks.3.attention"]);
    expect(above(["blocks.3.attention"])).toEqual(["blocks.3"]);
    expect(above(["blocks.3", "residual_mid"])).toEqual(["blocks.3"]);
    expect(above(["logits"])).toEqual([]);
    expect(inLayer(["blocks.3.attention", "scores"], "blocks.4")).toEqual(["blocks.4.attention", "scores"]);
    expect(named("blocks.0.feedforward").own).toBe("added");
  });
});

describe("tiles", () => {
  it("keep the strongest of what a pixel stands for", () => {
    const tile = { rows: 2, columns: 4, values: new Float32Array([0, -3, 1, 2, Number.NEGATIVE_INFINITY, 1, 0, 0]) };
    expect([...pooled(tile, 2, 2).values]).toEqual([-3, 2, 1, 0]);
    expect(pooled(tile, 9, 9)).toBe(tile);
  });
  it("have a window that stays inside", () => {
    expect([around(0, 5, 20), around(10, 5, 20), around(19, 5, 20), around(2, 9, 4)]).toEqual([0, 8, 15, 0]);
  });
});

describe("masking", () => {
  it("hides words by their places", () => {
    expect(maskedText("a  b c", "")).toBe("a  b c");
    expect(maskedText("a b c", "0,2")).toBe("[MASK] b [MASK]");
    expect(maskedText("“মা-পাখি কই?” বলল।", "0,1,2")).toBe("“[MASK] [MASK]?” [MASK]।");
    expect(maskedText("a — b", "1")).toBe("a [MASK] b");
    expect(wordsOf("“মা-পাখি কই?” — বলল।")).toEqual(["মা-পাখি", "কই", "—", "বলল"]);
    expect([toggled("", 2), toggled("2", 0), toggled("0,2", 0)]).toEqual(["2", "0,2", "2"]);
  });
});

describe("a cell in the address", () => {
  it("is selected only if the matrix has it", () => {
    expect(["4", "9", "8", "", undefined, "x"].map((each) => placeWithin(each, 8))).toEqual([3, -1, 7, -1, -1, -1]);
    expect(placeWithin("9")).toBe(8);
  });
});

describe("signs of a column", () => {
  const signs = (values: number[], more: boolean) => values.map((each) => sign(each, values, (one) => one, (one) => one.toFixed(1), more));
  it("mark the best and the worst of what is shown", () => {
    expect(signs([0.1, 0.5, 0.3], false)).toEqual(["▲", "▽", ""]);
    expect(signs([0.1, 0.5, 0.52], true)).toEqual(["▽", "▲", "▲"]);
  });
  it("do not mark values that look equal", () => {
    expect(signs([0.01, 0.04, 0], false)).toEqual(["", "", ""]);
  });
});
