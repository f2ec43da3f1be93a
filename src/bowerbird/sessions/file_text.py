"""A file's text as people are shown it: how much, in which language, None for a binary one (SV-15).

Here: telling text from binary, what a name says of the content. Not here: which state of a file is shown.
"""

import codecs
import os
import posixpath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowerbird.workspace.find.browsing import OpenFile

BINARY = frozenset(
    (".png .jpg .jpeg .gif .webp .bmp .ico .tif .tiff .avif .heic .psd .mp3 .wav .ogg .flac .m4a .mp4 .mov "
     ".avi .mkv .webm .zip .gz .bz2 .xz .zst .7z .rar .tar .tgz .jar .war .whl .pdf .doc .docx .xls .xlsx "
     ".ppt .pptx .odt .ods .odp .exe .dll .so .dylib .a .o .obj .class .pyc .pyo .wasm .bin .dat .db "
     ".sqlite .sqlite3 .woff .woff2 .ttf .otf .eot .npy .npz .pkl .parquet .gguf .onnx").split()
)  # fmt: skip

_BY_EXTENSION = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "jsx", ".ts": "typescript", ".tsx": "tsx", ".json": "json", ".jsonl": "json", ".md": "markdown",
    ".markdown": "markdown", ".html": "html", ".htm": "html", ".css": "css", ".scss": "scss", ".less": "less",
    ".sh": "bash", ".bash": "bash", ".zsh": "bash", ".yml": "yaml", ".yaml": "yaml", ".toml": "toml",
    ".ini": "ini", ".cfg": "ini", ".conf": "ini", ".xml": "xml", ".svg": "xml", ".sql": "sql", ".go": "go",
    ".rs": "rust", ".java": "java", ".kt": "kotlin", ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp",
    ".cxx": "cpp", ".hpp": "cpp", ".cs": "csharp", ".rb": "ruby", ".php": "php", ".swift": "swift",
    ".scala": "scala", ".r": "r", ".lua": "lua", ".pl": "perl", ".ps1": "powershell", ".vue": "vue",
    ".svelte": "svelte", ".diff": "diff", ".patch": "diff", ".tex": "latex", ".csv": "csv", ".tsv": "csv",
    ".proto": "protobuf", ".graphql": "graphql", ".tf": "hcl", ".dart": "dart", ".ex": "elixir",
    ".exs": "elixir", ".erl": "erlang", ".hs": "haskell", ".clj": "clojure", ".zig": "zig", ".nix": "nix",
}  # fmt: skip
_BY_NAME = {"dockerfile": "dockerfile", "makefile": "makefile", "cmakelists.txt": "cmake"}

TEXT_BYTES = 102_400
SNIFFED = 8192
CUT = "\n[… the rest is not shown: {size} bytes in all]"


def language_of(name: str) -> str:
    """Return the language of a text file by its name.

    Example:
        >>> language_of("a.py"), language_of("Makefile"), language_of("notes")
        ('python', 'makefile', 'text')
    """
    named = _BY_NAME.get(name.lower())
    return named or _BY_EXTENSION.get(posixpath.splitext(name)[1].lower(), "text")


def shown_file(file: "OpenFile") -> dict[str, Any]:
    """Return the body of `GET /api/workspace/file`; closes the file. Blocks."""
    try:
        data = os.pread(file.fd, TEXT_BYTES + 1, 0)
    finally:
        os.close(file.fd)
    path = file.path.lstrip("/")
    name = posixpath.basename(path)
    text = text_of(name, data)
    truncated = text is not None and len(data) > TEXT_BYTES
    if text is not None and truncated:
        text += CUT.format(size=file.size)
    return {
        "path": path,
        "name": name,
        "size": file.size,
        "content": text,
        "binary": text is None,
        "language": language_of(name) if text is not None else None,
        "truncated": truncated,
    }


def text_of(name: str, data: bytes) -> str | None:
    """Return the text of a file's beginning, None for a binary one (known type, NUL, not UTF-8).

    Args:
        data: at most `TEXT_BYTES` + 1 bytes; one more than shown says that there is more.

    Example:
        >>> text_of("a.txt", "é".encode()), text_of("a.png", b""), text_of("a", b"\\0")
        ('é', None, None)
    """
    if posixpath.splitext(name)[1].lower() in BINARY or b"\0" in data[:SNIFFED]:
        return None
    whole = len(data) <= TEXT_BYTES
    try:
        # A character that the cut divides is left out, one that is broken makes the file binary.
        return codecs.getincrementaldecoder("utf-8")().decode(data[:TEXT_BYTES], whole)
    except UnicodeDecodeError:
        return None
