/** Decode the weights in the page: gzip in base64. */
import { bytesOf } from "@/math/base64";

export async function unpacked(base64: string): Promise<ArrayBuffer> {
  return new Response(new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
