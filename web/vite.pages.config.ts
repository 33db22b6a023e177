import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Pages that are one file each: Python puts the script, the styles and the data into them. So fonts and workers are
// inside the script and the styles, and there is one of each. The mode says which page: a folder of `src/pages`.
export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  resolve: { alias: { "@words": at("../src/kotha/report/studio/words"), "@messages": at("../src/kotha/i18n/bn"), "@page": at(`src/pages/${mode}`), "@": at("src") } },
  worker: { format: "iife" },
  publicDir: false,
  build: {
    outDir: at("../src/kotha/report/studio/static/single"),
    emptyOutDir: false, // the studio's build before it has emptied it
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    cssCodeSplit: false,
    modulePreload: false,
    target: "es2022",
    reportCompressedSize: false,
    rolldownOptions: {
      input: { [mode]: at("src/pages/show.ts") },
      output: { format: "iife", entryFileNames: "[name].js", assetFileNames: `${mode}[extname]` },
    },
  },
}));
