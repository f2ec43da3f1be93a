import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Relative addresses: the server may live below a path prefix (UI-2). Chunks find each other by
// `import.meta.url`; the two addresses in index.html are made absolute by the server's pages.
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    outDir: process.env["BOWERBIRD_UI_OUT"] ?? "../src/bowerbird/ui",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
  },
  server: { port: 3500, strictPort: true },
});
