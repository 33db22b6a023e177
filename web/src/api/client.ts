/** The server's addresses, typed by its own schema (`schema.d.ts` is made from it); errors as sentences. */
import { connection } from "@/state/connection.svelte";
import type { ServerMessage } from "@/words/localize";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
type Posts = { [P in keyof paths]: paths[P] extends { post: { requestBody: { content: { "application/json": unknown } } } } ? P : never }[keyof paths];
type Gets = { [P in keyof paths]: paths[P] extends { get: { responses: unknown } } ? P : never }[keyof paths];
type Body<P extends Posts> = paths[P] extends { post: { requestBody: { content: { "application/json": infer B } } } } ? B : never;
type ResponseOf<R> = R extends { responses: { 200: { content: { "application/json": infer A } } } } ? A : R extends { responses: { 201: { content: { "application/json": infer A } } } } ? A : never;

/** What the server said was wrong; `status` 0 where nobody answered. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string | null = null,
    readonly param: string | null = null,
    /** The same as data, to be said in the reader's language. */
    readonly localizable: ServerMessage | string = message,
  ) {
    super(message);
  }
}

/** Ask with a body; the last question at an address wins where a `signal` gives up the earlier ones. */
export async function post<P extends Posts>(path: P, body: Body<P>, signal?: AbortSignal, names: Record<string, string> = {}): Promise<ResponseOf<paths[P]["post"]>> {
  const answer = await request(named(path, names), { method: "POST", body: JSON.stringify(body), signal: signal ?? null });
  return (await answer.json()) as ResponseOf<paths[P]["post"]>;
}

/** Read an address; names in it are filled in. */
export async function get<P extends Gets>(path: P, names: Record<string, string> = {}, signal?: AbortSignal): Promise<ResponseOf<paths[P]["get"]>> {
  const answer = await request(named(path, names), { signal: signal ?? null });
  return (await answer.json()) as ResponseOf<paths[P]["get"]>;
}

export function named(path: string, names: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? ""));
}

/** Any request: with the key where there is one, its failures told in words. */
export async function request(path: string, how: RequestInit = {}): Promise<Response> {
  const headers = new Headers(how.headers);
  if (how.body != null && !headers.has("content-type")) headers.set("content-type", "application/json");
  if (connection.key !== "") headers.set("authorization", `Bearer ${connection.key}`);
  let answer: Response;
  try {
    answer = await fetch(path, { ...how, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    connection.lost();
    throw new ApiError("", 0, "away");
  }
  connection.found();
  if (answer.ok) return answer;
  if (answer.status === 401) connection.keyNeeded = true;
  throw await refusal(answer);
}

/** Anything that was thrown, as what a page shows. */
export function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(String(error), -1);
}

/** What the server said was wrong, in the middle of a stream too. */
export function refused(error: Schemas["ErrorDetail"], status: number): ApiError {
  return new ApiError(error.message, status, error.code, error.param, error);
}

async function refusal(answer: Response): Promise<ApiError> {
  try {
    return refused(((await answer.json()) as Schemas["ErrorResponse"]).error, answer.status);
  } catch {
    return new ApiError(answer.statusText, answer.status);
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
