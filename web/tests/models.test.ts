// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { models } from "../src/state/models.svelte";

test("an address may ask for a model that no server has", () => {
  for (const name of ["constructor", "__proto__", "toString", "নেই"]) {
    expect(models.known[name]).toBeUndefined();
    expect(models.title(name)).toBe(name);
  }
});
