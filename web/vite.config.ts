import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { firstPaint } from "./src/app/first_paint.ts";

/** Scripts and styles lie beside their compressed forms, which the server sends to whoever takes them (UI-93). */
function compressed(): Plugin {
  let out = "";
  return {
    name: "compressed",
    apply: "build",
    configResolved: (config) => void (out = resolve(config.root, config.build.outDir, "assets")),
    closeBundle() {
      for (const name of readdirSync(out)) {
        if (!/\.(js|css|svg)$/.test(name)) continue;
        const data = readFileSync(join(out, name));
        const small = brotliCompressSync(data, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: data.length } });
        writeFileSync(join(out, `${name}.br`), small);
        writeFileSync(join(out, `${name}.gz`), gzipSync(data, { level: 9 }));
      }
    },
  };
}

const ALWAYS = ["", "theme.js", "icon.svg", "icon-192.png", "manifest.webmanifest"];
/** Pages that are there without a network; the others are fetched when they are opened. */
const OFFLINE = /src\/(main|app\/start|chat\/page|chat\/home|chat\/welcome|app\/(shared|sign_in))\.tsx$/;
const START = /src\/app\/start\.tsx$/;
/** Pages that people come to by a link; `public/theme.js` knows their addresses. */
const PAGES = { chat: /src\/chat\/page\.tsx$/, review: /src\/review\/page\.tsx$/ };
const FONTS = /^assets\/(inter|jetbrains-mono)-latin-wght/;

/** Tell the service worker which files are the shell, and give each set of them its version (UI-95). */
function serviceWorker(): Plugin {
  let out = "";
  const shell = new Set<string>(ALWAYS);
  return {
    name: "service-worker",
    apply: "build",
    configResolved: (config) => void (out = resolve(config.root, config.build.outDir)),
    writeBundle(_, bundle) {
      const add = (name: string): void => {
        const file = bundle[name];
        if (!file || shell.has(name)) return;
        shell.add(name);
        if (file.type !== "chunk") return;
        for (const css of file.viteMetadata?.importedCss ?? []) shell.add(css);
        file.imports.forEach(add);
      };
      for (const [name, file] of Object.entries(bundle)) {
        if (FONTS.test(name)) shell.add(name);
        else if (file.type === "chunk" && (file.isEntry || OFFLINE.test(file.facadeModuleId ?? ""))) add(name);
      }
    },
    closeBundle() {
      const files = [...shell].sort();
      const index = readFileSync(join(out, "index.html"));
      const worker = readFileSync(join(out, "sw.js"), "utf8");
      const version = createHash("sha256").update(files.join()).update(index).update(worker).digest("hex").slice(0, 16);
      writeFileSync(join(out, "sw.js"), worker.replace('["__SHELL__"]', JSON.stringify(files)).replace("__VERSION__", version));
    },
  };
}

/** KaTeX names each font in three forms; every browser that can read these scripts reads the first. */
function oneFontForm(): Plugin {
  return {
    name: "one-font-form",
    enforce: "pre",
    transform: (code, id) =>
      id.includes("katex") && id.endsWith(".css") ? { code: code.replace(/,url\([^)]*\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)/g, ""), map: null } : null,
  };
}

/**
 * The page is not white until scripts of 280 kB have run (UI-93): its first words are in the page, and what draws
 * them comes before the scripts. On a phone's network that is a second. What the application is made of is fetched
 * beside the library that draws it, though it runs after it.
 */
function paintedFirst(): Plugin {
  const later = (html: string): string => html.replace(/<(script type="module"|link rel="modulepreload")/g, '<$1 fetchpriority="low"');
  return {
    name: "painted-first",
    transformIndexHtml: {
      order: "post",
      handler: (html, { bundle = {} }) => {
        const partsOf = (source: RegExp): string[] => {
          const parts = new Set<string>();
          const add = (name: string): void => {
            const file = bundle[name];
            if (file?.type !== "chunk" || parts.has(name)) return;
            parts.add(name);
            for (const css of file.viteMetadata?.importedCss ?? []) parts.add(css);
            file.imports.forEach(add);
          };
          for (const [name, file] of Object.entries(bundle)) if (file.type === "chunk" && source.test(file.facadeModuleId ?? "")) add(name);
          return [...parts].filter((name) => !html.includes(name));
        };
        const start = partsOf(START);
        const pages = Object.fromEntries(Object.entries(PAGES).map(([kind, source]) => [kind, partsOf(source).filter((name) => !start.includes(name))]));
        const links = start.filter((name) => name.endsWith(".js")).map((name) => `  <link rel="modulepreload" crossorigin href="./${name}">\n  `);
        const whole = html
          .replace("<!--first-paint-->", firstPaint)
          .replace('name="bowerbird-pages" content="{}"', `name="bowerbird-pages" content='${JSON.stringify(pages)}'`)
          .replace("</head>", `${links.join("")}</head>`);
        return later(whole);
      },
    },
  };
}

// Relative addresses: the server may live below a path prefix (UI-2). Chunks find each other by
// `import.meta.url`; the two addresses in index.html are made absolute by the server's pages.
export default defineConfig({
  base: "./",
  plugins: [react(), paintedFirst(), oneFontForm(), compressed(), serviceWorker()],
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
