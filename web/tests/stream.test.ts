// @vitest-environment happy-dom
import { afterEach, describe, expect, it, vi } from "vitest";
import { events } from "@/api/stream";

afterEach(() => vi.unstubAllGlobals());

/** An answer whose bytes come in pieces of this size, through letters and events alike. */
function inPieces(text: string, size: number): Response {
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
      controller.close();
    },
  });
  return new Response(body, { status: 200 });
}

describe("events", () => {
  it.each([1, 2, 3, 7, 1000])("are whole when the network cuts every %i bytes", async (size) => {
    const sent = 'id: 1\ndata: {"text": "ক্ষমা"}\n\n: nobody\n\nid: 2\nevent: end\ndata: ব্যাংক\ndata: দুই\n\n';
    vi.stubGlobal("fetch", () => Promise.resolve(inPieces(sent, size)));
    const found = [];
    for await (const event of events("/api/x", {})) found.push(event);
    expect(found).toEqual([
      '{"text": "ক্ষমা"}',
      "ব্যাংক\nদুই",
    ]);
  });
});
