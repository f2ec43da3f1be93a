// Runs before the first paint, so that no other theme flashes (UI-15). A file of its own: no inline script.
(function () {
  var root = document.documentElement;
  var meta = document.querySelector('meta[name="bowerbird-base"]');
  var base = (meta && meta.getAttribute("content")) || "";
  var path = location.pathname.indexOf(base) === 0 ? location.pathname.slice(base.length) : location.pathname;
  var wanted = null;
  try {
    wanted = localStorage.getItem("bowerbird.theme");
  } catch (_) {
    wanted = null; // storage is turned off: as the system has it
  }
  if (wanted !== "light" && wanted !== "dark") wanted = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.face = path === "/dev" || path.indexOf("/dev/") === 0 ? "dev" : "user";
  root.dataset.theme = wanted;
  // What is seen until the application draws (src/app/first_paint.ts); without scripts, nothing of it.
  root.dataset.start = path === "" || path === "/" ? "welcome" : path === "/dev" ? "overview" : "page";
  try {
    if (JSON.parse(localStorage.getItem("bowerbird.preferences") || "{}").sidebar === false) root.dataset.start += " wide";
  } catch (_) {
    // unreadable: as the application takes it, with the sidebar
  }
  // What the page at this address is made of is fetched beside the rest, not after it (vite.config.ts).
  var pages = document.querySelector('meta[name="bowerbird-pages"]');
  var kind = /\/c\/[^/]+\/diff$/.test(path) ? "review" : /\/c\/[^/]+$/.test(path) ? "chat" : "";
  var parts = pages && kind ? JSON.parse(pages.getAttribute("content"))[kind] || [] : [];
  // A frame is drawn when the style sheet is here: before it, they would hold it up.
  if (parts.length > 0) requestAnimationFrame(function () {
    parts.forEach(function (part) {
      var link = document.createElement("link");
      var style = /\.css$/.test(part);
      link.rel = style ? "preload" : "modulepreload";
      if (style) link.as = "style";
      link.crossOrigin = "";
      link.fetchPriority = "low";
      link.href = base + "/" + part;
      document.head.appendChild(link);
    });
  });
})();
