/** Whether the server responds, and the key that it may require. The key is stored in this tab only, never in an address. */
import { recall, remember } from "./remembered";

const KEPT = "kotha.key";
const FIRST_WAIT = 2;
const LONGEST_WAIT = 15;

class Connection {
  away = $state(false);
  /** Seconds until the next attempt. */
  wait = $state(0);
  keyNeeded = $state(false);
  key = $state(recall(KEPT, "sessionStorage") ?? "");
  #waits = FIRST_WAIT;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** The server did not respond: retry with increasing delays. */
  lost(): void {
    if (this.#timer !== undefined) return;
    this.away = true;
    this.wait = this.#waits;
    this.#timer = setInterval(() => {
      this.wait -= 1;
      if (this.wait <= 0) void this.#look();
    }, 1000);
  }

  /** The server responded. */
  found(): void {
    this.away = false;
    this.#waits = FIRST_WAIT;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  setKey(key: string): void {
    this.key = key.trim();
    this.keyNeeded = false;
    remember(KEPT, this.key, "sessionStorage");
  }

  async #look(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    try {
      await fetch("/health");
      this.found();
    } catch {
      this.#waits = Math.min(2 * this.#waits, LONGEST_WAIT);
      this.lost();
    }
  }
}

export const connection = new Connection();
