/** The interface to the page's model: sends requests to the worker and returns its answers. */
import type { Description } from "@/model/description";
import type { Answers, FromWorker, Order, Question, GeneratedToken } from "./protocol";
import ModelWorker from "./worker?worker&inline";

interface Waiting {
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
  listener?: Listener;
}

/** Callbacks for a text that is being generated. */
export interface Listener {
  token: (token: GeneratedToken, certain: number) => void;
  kept?: (adds: string[]) => void;
}

export class Source {
  private readonly worker = new ModelWorker();
  private readonly waiting = new Map<number, Waiting>();
  private count = 0;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      const waiting = this.waiting.get(data.number);
      if (waiting === undefined) return;
      if ("token" in data) waiting.listener?.token(data.token, data.certain);
      else if ("kept" in data) waiting.listener?.kept?.(data.kept);
      else {
        this.waiting.delete(data.number);
        if ("error" in data) waiting.reject(new Error(data.error));
        else waiting.resolve(data.answer as never);
      }
    };
  }

  /** `simd` false uses the plain product, for measurements. */
  open(description: Description, weights: string, simd: boolean): Promise<Answers["open"]> {
    return this.ask({ kind: "open", description, weights, simd });
  }

  /** The tokens of texts, after the token that starts a document. */
  read(texts: string[]): Promise<Answers["read"]> {
    return this.ask({ kind: "read", texts });
  }

  write(ids: number[], prompt: number, order: Order, listener?: Listener): Promise<Answers["write"]> {
    return this.ask({ kind: "write", ids, prompt, order }, listener);
  }

  /** The next-token distribution after these tokens, and the attention of the last of them. */
  scores(ids: number[], prompt: number): Promise<Answers["scores"]> {
    return this.ask({ kind: "scores", ids, prompt });
  }

  stop(): void {
    this.worker.postMessage({ stop: true });
  }

  private ask<K extends keyof Answers>(question: Question & { kind: K }, listener?: Listener): Promise<Answers[K]> {
    const number = (this.count += 1);
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { resolve, reject, ...(listener === undefined ? {} : { listener }) });
      this.worker.postMessage({ number, question });
    });
  }
}
