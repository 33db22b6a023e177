/** Server-sent events over fetch: split at blank lines, however the network cut them, so that no letter is torn. */
import { request } from "./client";

/** The data of the events of an address, as they come, until it ends or `signal` gives up. */
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
