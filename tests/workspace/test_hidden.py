"""Environment files and private keys that no branch shows (D-10, WS-9)."""

import os
from pathlib import Path

import pytest
from support.branches import branch_of
from support.trees import read_tree, write_tree

from bowerbird.config.sections.ground import HIDE, WorkspaceSection
from bowerbird.core.errors import Hidden, InvalidPattern, LandingRefused, NotFound
from bowerbird.workspace import Workspace
from bowerbird.workspace.processes.mask import Mask
from bowerbird.workspace.tree.hiding import Hiding

SECRET = "SUPERSECRETVALUE42"


@pytest.mark.parametrize(
    "path",
    [
        "/.env", "/a/b/.env", "/.env.local", "/.env.production", "/id_rsa", "/x/id_ed25519", "/tls/server.key",
        "/tls/server-key.pem", "/privkey1.pem", "/a.p12", "/a.pfx", "/release.keystore", "/.netrc",
        "/.git-credentials", "/home/.aws/credentials", "/.aws/credentials", "/service-account-prod.json",
        "/client_secret_1.json", "/.env/below/it",
    ],
)  # fmt: skip
def test_secrets_are_hidden_by_default(path: str) -> None:
    """D-10"""
    assert Hiding(HIDE)(path)


def test_case_hides_no_secret_from_being_hidden() -> None:
    """D-10: `.ENV` is read by the programs of a case-insensitive disk, too."""
    hides = Hiding(HIDE)
    assert hides("/.ENV") and hides("/a/.Env.Local") and hides("/ID_RSA") and not hides("/.ENV.example")


@pytest.mark.parametrize(
    "path",
    [
        "/", "/.env.example", "/.env.sample", "/a/.env.template", "/.env.dist", "/.envrc", "/environment",
        "/x.env.py", "/id_rsa.pub", "/cacert.pem", "/certs/cert.pem", "/pubkey.pem", "/server.crt", "/key.py",
        "/.aws/config", "/credentials", "/monkey.txt", "/.npmrc", "/tests/test_id_rsa.py", "/keyboard",
    ],
)  # fmt: skip
def test_templates_public_keys_and_ordinary_names_are_shown(path: str) -> None:
    """D-10"""
    assert not Hiding(HIDE)(path)


def test_a_name_is_shown_again_by_a_setting() -> None:
    """D-10"""
    shown = Hiding(WorkspaceSection(show=(".env.test", "/tests/**/*.key")).hidden)
    assert not shown("/app/.env.test") and not shown("/tests/tls/server.key")
    assert shown("/app/.env") and shown("/tls/server.key")
    assert WorkspaceSection(hide=()).hidden == ()


@pytest.mark.parametrize("rules", [["["], [""], ["!"], ["a\nb"], [f"f{n}" for n in range(500)], ["x" * 9000]])
def test_rules_that_cannot_hold_make_no_branch(tmp_path: Path, rules: list[str]) -> None:
    """WS-9: a rule that would be left out in silence is refused."""
    with pytest.raises(InvalidPattern), branch_of(tmp_path, {"f": "x"}, hide=rules):
        pass


def test_odd_rules_mean_what_they_say() -> None:
    """WS-9"""
    hides = Hiding(["#x", "a*b", "{c,d}.txt", "/top", "deep/**", "[ef]", "\\!g", "?h"])
    assert all(
        map(hides, ["/#x", "/1/a--b", "/c.txt", "/1/d.txt", "/top", "/deep/1/2", "/1/e", "/!g", "/xh"])
    )
    assert not any(map(hides, ["/x", "/1/top", "/deep", "/1/deep/2", "/g", "/h", "/ab/../c"[:1], "/e.txt"]))


async def test_whoever_asks_for_a_hidden_file_is_told_so(tmp_path: Path) -> None:
    """D-10: the hidden is said, in reading, writing and listing."""
    files = {".env": SECRET, "app/.env.local": SECRET, "app/a.py": "x = 1\n", ".env.example": "KEY=\n"}
    with branch_of(tmp_path, files, hide=HIDE) as branch:
        for call in (branch.read_file(".env"), branch.read_bytes("app/.env.local"), branch.ls(".env")):
            with pytest.raises(NotFound, match="hidden from agents by the setting workspace"):
                await call
        for call in (
            branch.write_file(".env", "x"),
            branch.move("app/a.py", "app/.env"),
            branch.delete(".env"),
        ):
            with pytest.raises(Hidden, match="setting workspace"):
                await call
        assert (await branch.ls("/"))["hidden"] == [".env"]
        assert (await branch.ls("app"))["hidden"] == [".env.local"]
        assert [row["name"] for row in (await branch.ls("/"))["entries"]] == [".env.example", "app"]
        assert (await branch.search_files(SECRET, include_ignored=True))["total"] == 0
        assert (await branch.read_file(".env.example"))["content"] == "KEY=\n"


async def test_a_landing_leaves_hidden_files_where_they_are(tmp_path: Path) -> None:
    """D-10, WS-9: deleting, moving or replacing a directory never touches what is hidden in it."""
    root = tmp_path / "ws"
    files = {
        f"{d}/{name}": SECRET for d in ("gone", "moved", "turned", "kept") for name in (".env", "id_rsa")
    }
    write_tree(root, files | {f"{d}/a.txt": "a\n" for d in ("gone", "moved", "turned", "kept")})
    with Workspace(root, data_dir=tmp_path / "data", hide=HIDE) as workspace:
        branch = workspace.branch()
        await branch.delete("gone", recursive=True)
        await branch.move("moved", "elsewhere")
        await branch.delete("turned", recursive=True)
        await branch.write_file("turned", "a file now\n")
        await branch.write_file("kept/a.txt", "b\n")
        changed = [*branch.changes().written, *branch.changes().deleted]
        assert changed and not any(".env" in path or "id_rsa" in path for path in changed)
        with pytest.raises(LandingRefused, match="gone"):  # a whole landing does not pretend that it is gone
            branch.land(["gone"])
        branch.land(partial=True)
        branch.land(partial=True, force=True)
    assert {path: (root / path).read_text() for path in files} == files
    assert (root / "kept/a.txt").read_text() == "b\n" and (root / "elsewhere/a.txt").exists()
    assert not (root / "gone/a.txt").exists()


async def test_what_a_hidden_name_gets_on_a_branch_never_lands(tmp_path: Path) -> None:
    """WS-9: a directory that is moved under a hidden name, or holds one, brings none into the workspace."""
    root = tmp_path / "ws"
    write_tree(root, {".env": SECRET, "a/b.txt": "b\n"})
    before = read_tree(root)
    with Workspace(root, data_dir=tmp_path / "data", hide=HIDE) as workspace:
        branch = workspace.branch()
        open_layer = branch.processes().directory / "open"
        place = next(p for p in (open_layer, *open_layer.parent.glob("*/")) if p.name.startswith("open"))
        (place / ".env").write_text("made by a command\n")  # as a process's overlay would have written it
        assert branch.changes().record() == {"written": [], "deleted": []}
        with pytest.raises(NotFound, match="hidden"):
            await branch.read_file(".env")
        branch.land()
    assert read_tree(root) == before


def test_looking_for_hidden_names_costs_little(tmp_path: Path) -> None:
    """A check per path stays cheap: nothing is looked at twice, and large trees only now and then."""
    root = tmp_path / "ws"
    for number in range(1200):
        (root / f"d{number % 40}" / f"e{number}").mkdir(parents=True)
    (root / "d1/.env").write_text(SECRET)
    with Workspace(root, data_dir=tmp_path / "data", hide=HIDE) as workspace:
        branch = workspace.branch()
        mask = Mask(branch.ground)
        first = mask.layer(tmp_path / "mask")
        looked: list[int] = []
        scandir = os.scandir

        def counted(place: int) -> object:
            looked.append(place)
            return scandir(place)

        os.scandir = counted  # type: ignore[assignment]
        try:
            assert mask.layer(tmp_path / "mask") == first and not looked
        finally:
            os.scandir = scandir
