/** Mounts a single-file page: passes the data from Python to the component of the folder that the build selects. */
import App from "@page/App.svelte";
import { mount } from "svelte";
import type { Templates } from "@/words/message";
import { setTemplates } from "@/words/localize";
import "@/styles/tokens.css";
import "@/styles/base.css";

const page = JSON.parse(document.getElementById("data")?.textContent ?? "") as { bangla?: Templates };
setTemplates(page.bangla ?? {});
const target = document.getElementById("studio");
if (target !== null) mount(App, { target, props: { page: page as never } });
