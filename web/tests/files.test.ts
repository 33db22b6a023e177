import { expect, test } from "vitest";
import { isOneDocument, NO_TEXT, textOf } from "../src/api/files";

const file = (bytes: number[] | string): File => new File([typeof bytes === "string" ? bytes : new Uint8Array(bytes)], "নদী.txt");

test("a file's text is read as it was saved", async () => {
  expect(await textOf(file("নদী\u200d"))).toBe("নদী\u200d");
  expect(await textOf(file([0xef, 0xbb, 0xbf, 0x61]))).toBe("a");
  expect(await textOf(file([0xff, 0xfe, 0xa8, 0x09, 0x0a, 0x00]))).toBe("ন\n");
  expect(await textOf(file([0xfe, 0xff, 0x09, 0xa8]))).toBe("ন");
});

test("what holds no words, or holds them in a wrapping, is refused by what it is", async () => {
  const wrong = { "": "no_words", " \n\u00a0\n": "no_words", "%PDF-1.7\n1 0 obj": "no_pdf", "PK\x03\x04word": "no_office", "{\\rtf1 ": "no_office",
    "\ufeff \n<!DOCTYPE html><p>নদী": "no_html", "<HTML lang=bn>": "no_html" };
  for (const [text, code] of Object.entries(wrong)) await expect(textOf(file(text)), text).rejects.toMatchObject({ code, param: "নদী.txt" });
  expect(await textOf(file("<htmlx> %PDF-"))).toBe("<htmlx> %PDF-");
});

test("bytes that are no text are refused, and not replaced", async () => {
  for (const bytes of [[0x61, 0x93, 0x61], [0xe0, 0xa6], [0xff, 0xfe, 0x00]]) {
    await expect(textOf(file(bytes))).rejects.toMatchObject({ code: NO_TEXT, param: "নদী.txt" });
  }
});

test("blank lines part documents, and those around a text are none", () => {
  expect(["নদী\nগ্রাম", "\n\nনদী\n \n", "নদী", ""].map(isOneDocument)).toEqual([true, true, true, true]);
  expect(["নদী\n\nগ্রাম", "নদী\r\n \t\r\nগ্রাম"].map(isOneDocument)).toEqual([false, false]);
});
