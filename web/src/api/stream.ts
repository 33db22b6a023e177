/** Server-sent events over fetch, split at blank lines, so that characters are complete wherever the network splits them. */
import { request } from "./client";

/** Yield the data of the events of an address until the stream ends or `signal` aborts it. */
export async function* events(path: string, how: RequestInit): AsyncGenerator<string> {
  const answer = await request(path, how);
  if (answer.body === null) return;
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      held += decoder.decode(value ?? new Uint8Array(), { stream: !done });
      const whole = held.split(/\r?\n\r?\n/);
      held = whole.pop() ?? "";
      for (const block of whole) {
        const data = block.split(/\r?\n/).flatMap((line) => /^data: ?(.*)$/.exec(line)?.[1] ?? []);
        if (data.length > 0) yield data.join("\n");
      }
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
