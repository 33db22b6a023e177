import { mount } from "svelte";
import App from "./App.svelte";
import type { Told } from "./told";
import "@/styles/tokens.css";
import "@/styles/base.css";

const told = JSON.parse(document.getElementById("data")?.textContent ?? "") as Told;
const target = document.getElementById("studio");
if (target !== null) mount(App, { target, props: { told } });
