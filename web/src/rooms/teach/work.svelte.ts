/** A running job: its state, its steps and loss, and finally its held-out score. */
import { type ApiError, asError, get, named, request, type Schemas } from "@/api/client";

export type Job = Schemas["Job"];
export type Score = Schemas["RunScore"];

const EVERY = 1500;

export class Work {
  job: Job | null = $state.raw(null);
  step = $state(0);
  steps: number | null = $state(null);
  loss: number | null = $state(null);
  /** Seconds per step. */
  pace: number | null = $state(null);
  score: Score | null = $state.raw(null);
  wrong: ApiError | null = $state.raw(null);
  stopping = $state(false);

  /** Poll a job until it ends; `ended` is called once. */
  follow(id: string, ended: (job: Job) => void): () => void {
    let over = false;
    const look = async (): Promise<void> => {
      try {
        const job = await get("/api/jobs/{id}", { id });
        if (job.kind !== "index") await this.#measure(id);
        if (over) return;
        this.wrong = null;
        if (job.state !== "running") {
          this.stopping = false;
          if (job.state === "done" && job.kind !== "index" && job.kind !== "learn") this.score = await get("/api/runs/{name}/score", { name: id });
          this.job = job;
          ended(job);
          return;
        }
        this.job = job;
      } catch (error) {
        if (over) return;
        this.wrong = asError(error);
        if (this.wrong.status !== 0) return; // no response: the page reports this, and the request is repeated
      }
      setTimeout(() => void (over || look()), EVERY);
    };
    void look();
    return () => (over = true);
  }

  async #measure(id: string): Promise<void> {
    const path = `${named("/api/runs/{name}", { name: id })}?after=${Math.max(-1, this.step - 1)}`;
    const run = (await (await request(path)).json()) as Schemas["RunResponse"];
    const [last, looked] = [run.points.at(-1), run.evaluations.at(-1)];
    this.steps = run.steps;
    this.step = Math.max(this.step, last?.step ?? 0, looked?.step ?? 0);
    if (last === undefined) return;
    this.loss = last.loss_nats;
    this.pace = last.seconds === null || last.step === 0 ? null : last.seconds / last.step;
  }

  async stop(id: string): Promise<void> {
    this.stopping = true;
    await request(named("/api/jobs/{id}/stop", { id }), { method: "POST" }).catch((error: unknown) => (this.wrong = asError(error)));
  }
}
