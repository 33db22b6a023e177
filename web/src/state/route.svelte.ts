/** Where the reader is, in the address: `#/look/blocks.3.attention/scores?h=2&m=box&x=…`. Back works, a link shows it. */
import { recall, remember } from "./remembered";

export const ROOMS = ["write", "look", "hand", "tokens", "design", "train", "compare", "teach"] as const;
export type Room = (typeof ROOMS)[number];

export interface Route {
  room: Room;
  path: string[];
  query: Record<string, string>;
}

// What language and theme a link asks for is taken once, at the start; afterwards they are the reader's own.
const ASKED_ONCE = ["lang", "theme"];
// What goes along from room to room: the model, the one beside it, and the text.
const CARRIED = ["m", "b", "x"];
const LONGEST = 1500;
const TEXT = "kotha.text";

export function parse(hash: string): Route {
  const [way = "", search = ""] = hash.replace(/^#/, "").split("?", 2);
  const [room, ...path] = way.split("/").filter(Boolean).map(decodeURIComponent);
  const query = Object.fromEntries([...new URLSearchParams(search)].filter(([name]) => !ASKED_ONCE.includes(name)));
  return { room: ROOMS.find((each) => each === room) ?? "write", path, query };
}

export function format(route: Route): string {
  const search = new URLSearchParams(Object.entries(route.query).filter(([, value]) => value !== ""));
  const way = [route.room, ...route.path].map((part) => encodeURIComponent(part)).join("/");
  return `#/${way}${search.size > 0 ? `?${search}` : ""}`;
}

export const route: Route = $state(safely(location.hash));

addEventListener("popstate", () => Object.assign(route, safely(location.hash)));

/** Another room, with the model and the text that are at hand; or anywhere. */
export function link(room: Room, path: string[] = [], query: Record<string, string> = {}): string {
  const carried = Object.fromEntries(CARRIED.flatMap((name) => (route.query[name] ? [[name, route.query[name]]] : [])));
  return format({ room, path, query: { ...carried, ...query } });
}

/** Go there: opening a level is a step one can go back, moving about on it is not. */
export function navigate(change: Partial<Route>, how: { replace?: boolean } = {}): void {
  const next: Route = {
    room: change.room ?? route.room,
    path: change.path ?? route.path,
    query: { ...(change.query ?? route.query) },
  };
  const address = format(next);
  try {
    if (address !== location.hash) history[how.replace ? "replaceState" : "pushState"](null, "", address);
  } catch {
    // a page in a notebook's frame has no address to change
  }
  Object.assign(route, next);
}

/** Change some of what the address says, in place; an empty value leaves it out. */
export function updateQuery(query: Record<string, string>): void {
  navigate({ query: { ...route.query, ...query } }, { replace: true });
}

/** The text at hand; one that is too long for an address stays in this browser. */
export function text(): string {
  return route.query.x ?? recall(TEXT) ?? "";
}

export function setText(value: string): void {
  remember(TEXT, value);
  updateQuery({ x: value.length > LONGEST ? "" : value });
}

function safely(hash: string): Route {
  try {
    return parse(hash);
  } catch {
    return parse(""); // a percent sign that begins nothing
  }
}
