import { mount } from "svelte";
import App from "./App.svelte";
import "./styles/tokens.css";
import "./styles/base.css";
import type { Templates } from "./words/message";
import { setTemplates } from "./words/localize";

setTemplates(Object.assign({}, ...Object.values(import.meta.glob<Templates>("@messages/*.json", { eager: true, import: "default" }))));

const target = document.getElementById("studio");
if (target !== null) mount(App, { target });
