/** A page of one file: what Python put into it, given to the component of the folder that the build names. */
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
