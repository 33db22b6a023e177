/** The rooms of the studio: their keys, and their modules, each loaded when it is first opened. */
import type { Component } from "svelte";
import type { Room } from "@/state/route.svelte";

export const KEYS: Record<Room, string> = {
  write: "w", look: "l", hand: "h", tokens: "t", design: "d", train: "r", compare: "c", teach: "n",
};

const found = import.meta.glob<{ default: Component }>("../rooms/*/Room.svelte");

export async function load(room: Room): Promise<Component> {
  const open = found[`../rooms/${room}/Room.svelte`];
  if (open === undefined) throw new Error(`no room is called ${room}`);
  return (await open()).default;
}
