/** The progress of a long operation, polled while it runs. */
import { request, type Schemas } from "@/api/client";

const EVERY = 700;
type Status = Schemas["ProgressResponse"];

export class Progress {
  /** The last progress from the server; null if nothing is running, or there is none. */
  status: Status | null = $state.raw(null);

  /** Wait for an operation, and poll in the meantime; `model` is the model concerned. */
  async during<T>(work: Promise<T>, model: string | null = null): Promise<T> {
    let over = false;
    const ask = async (): Promise<void> => {
      if (over) return;
      const asked = model === null ? "" : `?${new URLSearchParams({ model }).toString()}`;
      const found = await request(`/api/progress${asked}`).then((answer) => answer.json() as Promise<Status>, () => null);
      if (over) return;
      this.status = found !== null && found.total > 0 ? found : null;
      setTimeout(() => void ask(), EVERY);
    };
    setTimeout(() => void ask(), EVERY);
    try {
      return await work;
    } finally {
      over = true;
      this.status = null;
    }
  }
}
