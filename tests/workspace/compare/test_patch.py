"""Patch text against real `git apply` (WS-36, acceptance 13)."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.workspace.compare.patch import patch_sections, quote_name
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.threeway import Side

BYTES = st.one_of(
    st.just(b""),
    st.builds(
        lambda lines, end: b"\n".join(lines) + end,
        st.lists(st.sampled_from([b"a", b"b", b"\xe4", b"c\r", b"\0x", "ü".encode()]), max_size=12),
        st.sampled_from([b"", b"\n"]),
    ),
    st.binary(max_size=300),
)
SIDES = st.one_of(
    st.none(),
    st.builds(lambda data, mode: Side("file", mode, Content(data)), BYTES, st.sampled_from([0o644, 0o755])),
    st.builds(lambda target: Side("symlink", target=target), st.sampled_from(["x", "a b", "../y"])),
)
NAMES = st.sampled_from(
    ["/plain", "/dir/with space", "/tab\tnew\nline", '/quo"te\\', "/ümlaut", "/\udcff\udcfe"]
)


def put(root: Path, path: str, side: Side | None) -> None:
    """Write one version into a real directory."""
    target = root / path[1:]
    target.parent.mkdir(parents=True, exist_ok=True)
    if side is None:
        return
    if side.kind == "symlink":
        target.symlink_to(side.target or "")
        return
    target.write_bytes(side.content.read() if side.content else b"")
    target.chmod(side.mode)


def tree(root: Path) -> dict[str, tuple[str, bytes, bool]]:
    """What git would know of a directory."""
    found: dict[str, tuple[str, bytes, bool]] = {}
    for path in root.rglob("*"):
        key = str(path.relative_to(root))
        if path.is_symlink():
            found[key] = ("link", os.fsencode(path.readlink()), False)
        elif path.is_file():
            found[key] = ("file", path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def apply_patch(root: Path, text: str, *options: str) -> None:
    subprocess.run(
        ["git", "apply", *options, "-"], input=text.encode(), cwd=root, check=True, capture_output=True
    )


@settings(max_examples=120, deadline=None)
@given(path=NAMES, old=SIDES, new=SIDES)
def test_git_apply_makes_the_new_version_and_back(path: str, old: Side | None, new: Side | None) -> None:
    text = "".join(patch_sections(path, old, new))
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as wanted:
        put(Path(base), path, old)
        put(Path(wanted), path, new)
        before = tree(Path(base))
        if text:
            apply_patch(Path(base), text)
        assert tree(Path(base)) == tree(Path(wanted))
        if text:
            apply_patch(Path(base), text, "-R")
        assert tree(Path(base)) == before


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("b/plain", "b/plain"),
        ("b/a b", "b/a b"),
        ('b/"', '"b/\\""'),
        ("b/\udcff", '"b/\\377"'),
        ("b/ü", "b/ü"),
    ],
)
def test_names_are_quoted_as_git_does(name: str, quoted: str) -> None:
    assert quote_name(name) == quoted


def test_latin_1_goes_as_a_binary_patch_so_that_the_text_loses_nothing() -> None:
    text = "".join(
        patch_sections("/a", *(Side("file", 0o644, Content(text)) for text in (b"\xe4\n", b"\xf6\n")))
    )
    assert "GIT binary patch" in text and text.encode().decode() == text
