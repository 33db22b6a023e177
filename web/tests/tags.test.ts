import { expect, test } from "vitest";
import { allTags, tagsIn, typedTags } from "../src/math/tags";

test("tags are read from one line as people type them", () => {
  expect(tagsIn("")).toEqual([]);
  expect(tagsIn(" ছোট ,গল্প,  , ছোট; দুই   শব্দ ")).toEqual(["ছোট", "গল্প", "দুই শব্দ"]);
  expect(tagsIn("\u09df")).toEqual(["\u09af\u09bc"]); // as the server keeps it, so that one is not two
  expect(tagsIn(typedTags(["ক", "খ গ"]))).toEqual(["ক", "খ গ"]);
});

test("all tags, the most used first", () => {
  expect(allTags([{ tags: ["ক"] }, { tags: ["খ", "গ"] }, { tags: ["গ"] }, { tags: [] }])).toEqual(["গ", "ক", "খ"]);
});
