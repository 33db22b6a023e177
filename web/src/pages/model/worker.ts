/** The model in a worker, so that it does not block typing. Requests are processed one at a time, in order. */
import { shown } from "@/math/letters";
import { ranked } from "@/math/sampling";
import type { Gpt } from "@/model/gpt";
import { openModel } from "@/model/gpt";
import { LetterStream } from "@/model/letters";
import { Tokenizer } from "@/model/tokenizer";
import { unpacked } from "@/model/unpack";
import { sampleToken, Numbers, Text, tokenReport } from "@/model/writing";
import type { Answers, FromWorker, Piece, Question, ToWorker, GeneratedToken } from "./protocol";

/** Number of best tokens whose text is sent to the page. */
const SPELLED = 64;

let model: Gpt;
let text: Text;
let tokenizer: Tokenizer;
let stopped = false;
let before: Promise<void> = Promise.resolve();

const say = (news: FromWorker) => postMessage(news);

addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  if ("stop" in data) {
    stopped = true;
    return;
  }
  const { number, question } = data;
  before = before.then(async () => {
    try {
      say({ number, answer: await answer(number, question) });
    } catch (error) {
      say({ number, error: error instanceof Error ? error.message : String(error) });
    }
  });
});

function answer(number: number, question: Question): Promise<Answers[keyof Answers]> | Answers[keyof Answers] {
  switch (question.kind) {
    case "open":
      return open(question);
    case "read":
      return question.texts.map((each) => {
        const ids = tokenizer.encodePrompt(each);
        const stream = new LetterStream();
        return { ids, pieces: ids.map((id) => ({ ...spelled(id), adds: stream.push(tokenizer.bytesOf(id)).characters })) };
      });
    case "scores":
      return scores(question);
    case "write":
      return write(number, question);
  }
}

async function open({ description, weights, simd }: Question & { kind: "open" }): Promise<Answers["open"]> {
  const begun = performance.now();
  tokenizer = new Tokenizer(description.vocabulary);
  model = await openModel(description, await unpacked(weights), simd);
  text = new Text(model);
  return { simd: model.simd, milliseconds: performance.now() - begun };
}

function scores({ ids, prompt }: Question & { kind: "scores" }): Answers["scores"] {
  const logits = text.logitsAfter(ids, prompt).slice();
  return { logits, pieces: [...ranked(logits, SPELLED)].map(spelled), ...text.attention() };
}

async function write(number: number, { ids, prompt, order }: Question & { kind: "write" }): Promise<Answers["write"]> {
  stopped = false;
  const { ends } = tokenizer.vocabulary;
  const tokens = [...ids];
  const numbers = new Numbers(order.seed);
  const stream = new LetterStream();
  let certain = 0;
  const kept = ids.slice(prompt).map((id) => stream.push(tokenizer.bytesOf(id)));
  for (const { letters } of kept) certain += letters.length;
  say({ number, kept: kept.map(({ characters }) => characters) });
  let written = 0;
  let begun = performance.now();
  const end = (why: Answers["write"]["stopped"]) => ({ stopped: why, perSecond: (1000 * Math.max(0, written - 1)) / (performance.now() - begun) });
  while (written < order.count) {
    const logits = text.logitsAfter(tokens, prompt);
    const generated = tokens.filter((token) => !ends.includes(token)); // end tokens are exempt from the repetition penalty
    const token = sampleToken(logits, order.settings, generated, numbers.next());
    if (ends.includes(token)) {
      certain += stream.finish().letters.length;
      return end("end");
    }
    if (written === 0) begun = performance.now(); // the prompt has been processed
    const { characters, letters } = stream.push(tokenizer.bytesOf(token));
    certain += letters.length;
    written += 1;
    tokens.push(token);
    say({ number, token: describe(logits, token, characters), certain });
    await aside();
    if (stopped) return end("stop");
  }
  return end("length");
}

function describe(logits: Float32Array, token: number, adds: string): GeneratedToken {
  const { probability, rank, above, others } = tokenReport(logits, token);
  return { ...spelled(token), adds, probability, rank, above, others: others.map((other) => ({ ...spelled(other.token), probability: other.probability })) };
}

function spelled(id: number): Piece {
  const { text: piece, part } = tokenizer.pieceOf(id);
  return { id, part, text: part ? piece : shown(piece) };
}

/** Let the worker receive a message; a timer would take four milliseconds. */
function aside(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
