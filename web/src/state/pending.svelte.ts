/** A question to the server as a page shows it: the last answer stays while the next one is on its way, the last wins. */
import { onDestroy, untrack } from "svelte";
import { type ApiError, asError, isAbort } from "@/api/client";

const PATIENCE = 150;

export class PendingRequest<T> {
  value: T | null = $state.raw(null);
  error: ApiError | null = $state.raw(null);
  /** Under way, and for longer than one would notice. */
  busy = $state(false);
  #current: AbortController | null = null;

  async ask(work: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
    this.#current?.abort();
    const mine = new AbortController();
    this.#current = mine;
    const noticed = setTimeout(() => (this.busy = true), PATIENCE);
    try {
      // An effect that asks depends on what it read before, never on what the question reads on its way.
      const value = await untrack(() => work(mine.signal));
      if (this.#current !== mine) return null;
      this.value = value;
      this.error = null;
      return value;
    } catch (error) {
      if (isAbort(error) || this.#current !== mine) return null;
      this.error = asError(error);
      return null;
    } finally {
      clearTimeout(noticed);
      if (this.#current === mine) {
        this.busy = false;
        this.#current = null;
      }
    }
  }

  /** Give up what is under way. */
  stop(): void {
    this.#current?.abort();
    this.#current = null;
    this.busy = false;
  }

  forget(): void {
    this.stop();
    this.value = null;
    this.error = null;
  }
}

/** Run something a while after the last call, for fields that are typed in; called while a component is set up.
 * If the component goes before, `work`, which may read what went with it, is not run; `left` is, at once. */
export function after(milliseconds: number, work: () => void, left?: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = () => {
    timer = undefined;
    work();
  };
  onDestroy(() => {
    if (timer === undefined) return;
    clearTimeout(timer);
    left?.();
  });
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, milliseconds);
  };
}
