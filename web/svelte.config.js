import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

// What scrolls must be reached by keys (axe, in the tests, asks for it); a page of one file is given its data once.
const isFine = ({ code, filename = "" }) => code === "a11y_no_noninteractive_tabindex" || (code === "state_referenced_locally" && filename.includes("/pages/"));

export default { preprocess: vitePreprocess(), compilerOptions: { runes: true, warningFilter: (warning) => !isFine(warning) } };
