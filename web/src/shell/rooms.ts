/** The rooms of the house: one for each folder of `rooms/` that has a `Room.svelte`, loaded when it is first entered. */
import type { Component } from "svelte";
import { ROOMS, type Room } from "@/state/place.svelte";

export const KEYS: Record<Room, string> = {
  write: "w", look: "l", hand: "h", tokens: "t", design: "d", train: "r", compare: "c", teach: "n",
};

const found = import.meta.glob<{ default: Component }>("../rooms/*/Room.svelte");

/** Those that are built, in the order of the rail. */
export const OPEN: readonly Room[] = ROOMS.filter((room) => `../rooms/${room}/Room.svelte` in found);

export async function load(room: Room): Promise<Component> {
  const open = found[`../rooms/${room}/Room.svelte`];
  if (open === undefined) throw new Error(`no room is called ${room}`);
  return (await open()).default;
}
