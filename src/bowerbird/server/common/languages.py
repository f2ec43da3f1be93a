"""What a file's name says about its content: languages for highlighting, types that are never text.

Here: those two tables. Not here: looking into files.
"""

import posixpath

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


def language_of(name: str) -> str:
    """Return the language of a text file by its name.

    Example:
        >>> language_of("a.py"), language_of("Makefile"), language_of("notes")
        ('python', 'makefile', 'text')
    """
    named = _BY_NAME.get(name.lower())
    return named or _BY_EXTENSION.get(posixpath.splitext(name)[1].lower(), "text")
