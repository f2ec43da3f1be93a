// Runs before the first paint, so that no other theme flashes (UI-15). A file of its own: no inline script.
(function () {
  var root = document.documentElement;
  var meta = document.querySelector('meta[name="bowerbird-base"]');
  var base = (meta && meta.getAttribute("content")) || "";
  var path = location.pathname.indexOf(base) === 0 ? location.pathname.slice(base.length) : location.pathname;
  var face = path === "/dev" || path.indexOf("/dev/") === 0 ? "dev" : "user";
  var wanted = null;
  try {
    wanted = localStorage.getItem("bowerbird.theme." + face);
  } catch (_) {
    wanted = null; // storage is turned off: the face's own theme
  }
  if (wanted === "system") wanted = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.face = face;
  root.dataset.theme = wanted || (face === "dev" ? "dark" : "light");
})();
