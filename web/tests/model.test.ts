import { describe, expect, test } from "vitest";
import type { Description, Vocabulary } from "@/model/description";
import { erf, openModel } from "@/model/gpt";
import { LetterStream, lettersOf } from "@/model/letters";
import { Tokenizer } from "@/model/tokenizer";
import { unpacked } from "@/model/unpack";
import { contextStart, Numbers, Text } from "@/model/writing";
import cases from "./cases/model.json";

interface ModelCase {
  description: unknown;
  weights: string;
  ids: number[];
  logits: Record<string, number[]>;
}

async function opened(name: string, simd: boolean) {
  const given = (cases.models as unknown as Record<string, ModelCase>)[name]!;
  return { given, model: await openModel(given.description as Description, await unpacked(given.weights), simd) };
}

const largest = (ours: ArrayLike<number>, theirs: number[]) => Math.max(...theirs.map((value, i) => Math.abs(value - ours[i]!)));

describe.each(Object.keys(cases.models))("the model %s", (name) => {
  test.each([false, true])("gives the library's logits (simd: %s)", async (simd) => {
    const { given, model } = await opened(name, simd);
    expect(model.simd).toBe(simd);
    given.ids.forEach((id, place) => {
      model.step(id, place);
      const theirs = given.logits[place];
      if (theirs !== undefined) expect(largest(model.logits, theirs)).toBeLessThan(2e-5);
    });
  });
});

test("each head's look is a share of what it sees", async () => {
  const { given, model } = await opened("qwen3", true);
  given.ids.forEach((id, place) => model.step(id, place, false));
  const layers = model.attention(given.ids.length);
  expect(layers.map((heads) => heads.length)).toEqual([2, 2]);
  for (const row of layers.flat()) expect(row.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 5);
});

test("a text that is gone on from is not read again, and another is", async () => {
  const { given, model } = await opened("gpt2", true);
  const { model: fresh } = await opened("gpt2", true);
  const text = new Text(model);
  const whole = new Text(fresh);
  for (const ids of [given.ids.slice(0, 5), given.ids.slice(0, 9), [...given.ids.slice(0, 3), 1, 2], [3]]) {
    expect([...text.logitsAfter(ids, ids.length)]).toEqual([...new Text(fresh).logitsAfter(ids, ids.length)]);
  }
  // longer than the context: its older half is forgotten
  const long = [...given.ids, ...given.ids];
  expect(contextStart(long.length, 5, 24)).toBe(24);
  expect([...text.logitsAfter(long, 5)]).toEqual([...whole.logitsAfter(long.slice(24), 16)]);
});

describe.each(Object.entries(cases.tokenizers))("the tokenizer %s", (_, given) => {
  const tokenizer = new Tokenizer(given.vocabulary as unknown as Vocabulary);

  test("gives the library's ids", () => {
    const ours = given.texts.map(([text]) => [text, tokenizer.normalize(text as string), tokenizer.encode(text as string)]);
    expect(ours).toEqual(given.texts);
  });

  test("gives the text back, at once and letter by letter", () => {
    expect(given.decoded.map(([ids]) => [ids, tokenizer.decode(ids as number[])])).toEqual(given.decoded);
    const streams = given.decoded.map(([ids]) => {
      const stream = new LetterStream();
      return [...(ids as number[]).map((id) => stream.push(tokenizer.bytesOf(id)).letters), stream.finish().letters];
    });
    expect(streams).toEqual(given.streams);
  });
});

test("letters are those of the library", () => {
  expect(cases.letters.map(([word]) => [word, lettersOf(word as string)])).toEqual(cases.letters);
});

test("a seed gives the library's numbers", () => {
  for (const [seed, numbers] of Object.entries(cases.uniforms)) {
    const source = new Numbers(Number(seed));
    const ours = Array.from({ length: 700 }, () => source.next()).filter((_, i) => i % 69 === 0);
    expect(ours).toEqual(numbers);
  }
});

test("the error function", () => {
  expect(erf(0.5)).toBeCloseTo(0.5204999, 6);
  expect(erf(-2)).toBeCloseTo(-0.9953223, 6);
});
