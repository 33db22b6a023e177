import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Pages that are one file each: Python puts the script, the styles and the data into them. So fonts and workers are
// inside the script and the styles, and there is one of each.
export default defineConfig({
  plugins: [svelte()],
  resolve: { alias: { "@words": at("../src/kotha/studio/words"), "@": at("src") } },
  worker: { format: "iife" },
  publicDir: false,
  build: {
    outDir: at("../src/kotha/studio/static/single"),
    emptyOutDir: true,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    cssCodeSplit: false,
    modulePreload: false,
    target: "es2022",
    reportCompressedSize: false,
    rolldownOptions: {
      input: { model: at("src/pages/model/main.ts") },
      output: { format: "iife", entryFileNames: "[name].js", assetFileNames: "model[extname]" },
    },
  },
});
