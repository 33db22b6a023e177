/** The reader's position, stored in the address (`#/look/blocks.3.attention/scores?h=2&m=box&x=…`) so that Back and links work. */
import { recall, remember } from "./remembered";

export const ROOMS = ["write", "look", "hand", "tokens", "design", "train", "compare", "teach"] as const;
export type Room = (typeof ROOMS)[number];

export interface Route {
  room: Room;
  path: string[];
  query: Record<string, string>;
}

// Language and theme of a link are applied once, at the start; afterwards they are the reader's choice.
const ASKED_ONCE = ["lang", "theme"];
// Parameters that are kept from room to room: both models and the text.
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

/** The address of another room, with the current model and text, or of any other page. */
export function link(room: Room, path: string[] = [], query: Record<string, string> = {}): string {
  const carried = Object.fromEntries(CARRIED.flatMap((name) => (route.query[name] ? [[name, route.query[name]]] : [])));
  return format({ room, path, query: { ...carried, ...query } });
}

/** Navigate: opening a level adds a history entry; moving within a level does not. */
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

/** Change parameters of the address in place; an empty value removes one. */
export function updateQuery(query: Record<string, string>): void {
  navigate({ query: { ...route.query, ...query } }, { replace: true });
}

/** The current text; a text that is too long for an address is stored in this browser. */
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
    return parse(""); // an invalid percent escape
  }
}
