/** A page of one file: what Python put into it, given to its component. */
import { type Component, mount } from "svelte";
import type { Templates } from "@/words/message";
import { tellWith } from "@/words/told";
import "@/styles/tokens.css";
import "@/styles/base.css";

export function show<Told>(App: Component<{ told: Told }>): void {
  const told = JSON.parse(document.getElementById("data")?.textContent ?? "") as Told & { bangla?: Templates };
  tellWith(told.bangla ?? {});
  const target = document.getElementById("studio");
  if (target !== null) mount(App, { target, props: { told } });
}
