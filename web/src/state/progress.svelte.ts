/** How far something is that takes its time: asked for while it is under way. */
import { request, type Schemas } from "@/api/client";

const EVERY = 700;
type Status = Schemas["ProgressResponse"];

export class Progress {
  /** What the server told last; null where nothing is under way, or it does not tell. */
  status: Status | null = $state.raw(null);

  /** Wait for work that is under way, and ask meanwhile; `model`: the one that it is about. */
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
