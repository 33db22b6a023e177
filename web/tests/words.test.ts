// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { fill } from "@/words/index.svelte";

describe("phrases", () => {
  it("fill numbers in as the sentence asks", () => {
    expect(fill("{n}টি টোকেন। `d_model` = {n} দিন।", { n: 1234 }, "bn")).toBe("১,২৩৪টি টোকেন। `d_model` = 1,234 দিন।");
    expect(fill("{n} tokens", { n: 1234 }, "en")).toBe("1,234 tokens");
    expect(fill("{p}", { p: { value: 0.5, decimals: 3 } }, "bn")).toBe("০.৫০০");
  });

  it("leave what is not given", () => {
    expect(fill("{other}", {}, "en")).toBe("{other}");
  });
});
