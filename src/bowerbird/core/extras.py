"""Libraries that come with an extra: whether they are here, and the one sentence that says they are not.

Here: which library belongs to which extra, the command that installs it. Not here: what is done without it.
"""

from importlib.util import find_spec

from bowerbird.core.errors import ExtraMissing

# For each extra: what is looked for, what it is for.
_EXTRAS = {
    "agents": (("acp",), "other programs over ACP"),
    "languages": (
        ("tree_sitter_typescript", "tree_sitter_cpp"),
        "symbols of C, C++, Go, Java, Rust and TypeScript",
    ),
    "mcp": (("mcp", "cryptography"), "MCP servers and clients"),
    "oidc": (("jwt", "cryptography"), "sign-ins at a provider"),
    "push": (("jwt", "cryptography"), "messages to browsers"),
    "telegram": (("telegram",), "chats"),
}


def install_command(extra: str) -> str:
    """Return what installs an extra.

    Example:
        >>> install_command("mcp")
        "pip install 'bowerbird[mcp]'"
    """
    return f"pip install 'bowerbird[{extra}]'"


def is_installed(extra: str) -> bool:
    """Whether the library of an extra is installed; nothing is imported."""
    return all(find_spec(name) is not None for name in _EXTRAS[extra][0])


def lacking() -> dict[str, str]:
    """Return what is not installed: extra → what it is for."""
    return {name: what for name, (_, what) in _EXTRAS.items() if not is_installed(name)}


def missing(extra: str, what: str) -> ExtraMissing | None:
    """Return the error that says that `what` needs an extra, None when it is installed.

    Example:
        >>> str(missing("mcp", "MCP servers") or "installed")
        'installed'
    """
    return (
        None
        if is_installed(extra)
        else ExtraMissing(f"{what} need the extra `{extra}`: {install_command(extra)}")
    )


def require(extra: str, what: str) -> None:
    """Raises ExtraMissing, in the words of `missing`, where the library of an extra is not installed."""
    error = missing(extra, what)
    if error is not None:
        raise error
