import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// The page is built into the package: whoever installs it needs no node. Its policy allows no inline script and no
// inline style, so nothing is inlined here either.
export default defineConfig({
  plugins: [svelte()],
  resolve: { alias: { "@words": at("../src/kotha/report/studio/words"), "@messages": at("../src/kotha/i18n/bn"), "@": at("src") } },
  build: {
    outDir: at("../src/kotha/report/studio/static"),
    emptyOutDir: true,
    assetsDir: "studio",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8000", "/api": "http://127.0.0.1:8000" } },
  test: { include: ["tests/**/*.test.ts"] },
});
