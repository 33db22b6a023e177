// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { format, parse } from "@/state/route.svelte";

describe("addresses", () => {
  it("says where one is, and reads it back", () => {
    const place = { room: "look" as const, path: ["blocks.3.attention", "scores"], query: { h: "2", x: "নদীর ধারে / ক্ষ ?" } };
    expect(parse(format(place))).toEqual(place);
  });

  it("takes anything for the first room", () => {
    expect(parse("").room).toBe("write");
    expect(parse("#/nowhere/at/all").room).toBe("write");
  });

  it("keeps language and theme out: they are the reader's own", () => {
    expect(parse("#/write?lang=en&theme=dark&m=box").query).toEqual({ m: "box" });
  });
});
