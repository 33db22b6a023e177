/** The results of head studies, on request; cached for each model, because a study takes a while. */
import type { Schemas } from "@/api/client";
import { PendingRequest } from "@/state/pending.svelte";
import { Progress } from "@/state/progress.svelte";

type Study = Schemas["Study"];

class HeadStudy {
  progress = new Progress();
  #by: Record<string, PendingRequest<Study>> = $state.raw({});

  of(model: string): PendingRequest<Study> | undefined {
    return this.#by[model];
  }

  async ask(model: string, work: (signal: AbortSignal) => Promise<Study>): Promise<void> {
    const asking = this.#by[model] ?? new PendingRequest<Study>();
    this.#by = { ...this.#by, [model]: asking };
    await asking.ask((signal) => this.progress.during(work(signal), model));
  }
}

export const headStudy = new HeadStudy();
