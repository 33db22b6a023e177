import App from "./App.svelte";
import { show } from "../show";

show(App);
