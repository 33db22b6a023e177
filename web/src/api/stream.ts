/** Server-sent events over fetch: split at blank lines, however the network cut them, so that no letter is torn. */
import { request } from "./client";

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** The events of an address, as they come, until it ends or `signal` gives up. */
export async function* events(path: string, how: RequestInit): AsyncGenerator<ServerEvent> {
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
        const event = parseEvent(block);
        if (event !== null) yield event;
      }
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** One event's lines; null for a comment. */
export function parseEvent(block: string): ServerEvent | null {
  const event: ServerEvent = { id: "", event: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === "data") data.push(value);
    else if (field === "id" || field === "event") event[field] = value;
  }
  if (data.length === 0) return null;
  return { ...event, data: data.join("\n") };
}
