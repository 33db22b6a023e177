import { describe, expect, it } from "vitest";
import { alikeLetters, sentences } from "@/rooms/write/reading";
import { formatSettings, parseSettings, USUAL } from "@/rooms/write/settings";

describe("two texts", () => {
  it("part at a whole letter, never inside one", () => {
    expect(alikeLetters("কি করে", "কী করে")).toEqual({ letters: 0, at: 0 });
    expect(alikeLetters("নদী পার", "নদী পাড়")).toEqual({ letters: 4, at: 6 });
  });

  it("are alike, or one goes on", () => {
    expect(alikeLetters("নদী", "নদী")).toEqual({ letters: null, at: 3 });
    expect(alikeLetters("নদী", "নদীর")).toEqual({ letters: 2, at: 3 });
  });
});

it("reads sentences that are done", () => {
  expect(sentences("সে এল। কে এল? আমি")).toEqual(["সে এল।", "কে এল?"]);
});

describe("settings in an address", () => {
  it("are what they were", () => {
    const settings = { temperature: 1.2, top_k: null, top_p: 0.9, min_p: null, repetition_penalty: 1.3 };
    expect(parseSettings(formatSettings(settings))).toEqual(settings);
    expect(formatSettings(USUAL)).toBe("");
    expect(parseSettings(formatSettings(USUAL, false))).toEqual(USUAL);
  });

  it("are the usual or off where they make no sense", () => {
    expect(parseSettings(undefined)).toEqual(USUAL);
    expect(parseSettings("hot,-3,7,x")).toEqual({ ...USUAL, top_k: null, repetition_penalty: null });
  });
});
