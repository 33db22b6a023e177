import { mount } from "svelte";
import type { Description } from "@/model/description";
import App from "./App.svelte";
import type { Card } from "./card";
import { Source } from "./source";
import "@/styles/tokens.css";
import "@/styles/base.css";

const inlined = (id: string) => document.getElementById(id)?.textContent ?? "";
const description = JSON.parse(inlined("data")) as Description & { card: Card };
const source = new Source();

// The weights are the last thing in the file: the page is there before them.
const opened = new Promise<void>((resolve) => {
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", () => resolve());
  else resolve();
}).then(() => open(true));

function open(simd: boolean) {
  return source.open(description, inlined("weights").trim(), simd);
}

// For whoever looks over its shoulder: the tests, and the export that compares what it wrote.
Object.assign(globalThis, { kotha: { source, opened, open } });

const target = document.getElementById("studio");
if (target !== null) mount(App, { target, props: { description, source, opened } });
