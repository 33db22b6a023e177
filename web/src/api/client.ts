/** Requests to the server, typed by its schema (`schema.d.ts` is generated from it); errors have a readable message. */
import { connection } from "@/state/connection.svelte";
import type { ServerMessage } from "@/words/localize";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
type Posts = { [P in keyof paths]: paths[P] extends { post: { requestBody: { content: { "application/json": unknown } } } } ? P : never }[keyof paths];
type Gets = { [P in keyof paths]: paths[P] extends { get: { responses: unknown } } ? P : never }[keyof paths];
type Body<P extends Posts> = paths[P] extends { post: { requestBody: { content: { "application/json": infer B } } } } ? B : never;
type ResponseOf<R> = R extends { responses: { 200: { content: { "application/json": infer A } } } } ? A : R extends { responses: { 201: { content: { "application/json": infer A } } } } ? A : never;

/** An error that the server returned; `status` is 0 if there was no response. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string | null = null,
    readonly param: string | null = null,
    /** The message as data, to be shown in the reader's language. */
    readonly localizable: ServerMessage | string = message,
  ) {
    super(message);
  }
}

/** Send a request with a body; with a `signal`, the last request to an address aborts earlier ones. */
export async function post<P extends Posts>(path: P, body: Body<P>, signal?: AbortSignal, names: Record<string, string> = {}): Promise<ResponseOf<paths[P]["post"]>> {
  const answer = await request(named(path, names), { method: "POST", body: JSON.stringify(body), signal: signal ?? null });
  return (await answer.json()) as ResponseOf<paths[P]["post"]>;
}

/** Send a GET request; parameters in the path are filled in. */
export async function get<P extends Gets>(path: P, names: Record<string, string> = {}, signal?: AbortSignal): Promise<ResponseOf<paths[P]["get"]>> {
  const answer = await request(named(path, names), { signal: signal ?? null });
  return (await answer.json()) as ResponseOf<paths[P]["get"]>;
}

export function named(path: string, names: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? ""));
}

/** Send any request, with the key if there is one; failures raise an error with a message. */
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

/** Convert anything that was thrown to an error that a page can show. */
export function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(String(error), -1);
}

/** Convert an error of the server, which can also occur in the middle of a stream. */
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
