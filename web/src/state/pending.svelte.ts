/** A request to the server as a page shows it: the last answer is kept while the next one is pending, and the last request wins. */
import { onDestroy, untrack } from "svelte";
import { type ApiError, asError, isAbort } from "@/api/client";

const PATIENCE = 150;

export class PendingRequest<T> {
  value: T | null = $state.raw(null);
  error: ApiError | null = $state.raw(null);
  /** Whether it has been pending for noticeably long. */
  busy = $state(false);
  #current: AbortController | null = null;

  async ask(work: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
    this.#current?.abort();
    const mine = new AbortController();
    this.#current = mine;
    const noticed = setTimeout(() => (this.busy = true), PATIENCE);
    try {
      // An effect that sends a request depends on the state that it read before, not on the state that the request reads.
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

  /** Abort the pending request. */
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

/** Debounce calls, for text fields; call this during the setup of a component. If the component is destroyed first,
 * `work`, which may read its state, is not called; `left` is called at once. */
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
