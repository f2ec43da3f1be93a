"""Skills on disk and as tools: TO-32, TO-33, AS-42, AS-44 … AS-46, CF-34."""

from pathlib import Path

import pytest

from bowerbird.skills import Skill, SkillLibrary, prompt_lines
from bowerbird.tools import ToolContext, ToolResult, Toolset
from bowerbird.tools.skills import skill_tools

NOTHING = ToolContext()


def write(root: Path, name: str, front: str | None = None, body: str = "Do it well.\n") -> Path:
    directory = root / "skills" / name
    directory.mkdir(parents=True)
    text = front if front is not None else f"name: {name}\ndescription: About {name}."
    (directory / "SKILL.md").write_text(f"---\n{text}\n---\n{body}")
    return directory


def own(root: Path, **options: object) -> SkillLibrary:
    return SkillLibrary(root, bundled=None, **options)  # type: ignore[arg-type]


async def read(library: SkillLibrary, **arguments: str) -> ToolResult:
    resolved = Toolset(skill_tools(library)).resolve("read_skill", arguments)
    assert resolved is not None
    return await resolved[0].call(resolved[1], NOTHING)


def test_skills_are_found_sorted_with_what_their_front_matter_says(tmp_path: Path) -> None:
    """AS-44."""
    write(tmp_path, "zebra")
    write(
        tmp_path,
        "apple",
        "name: apple\ndescription: >\n  Peel\n  it.\nrequires_env: HOME\nlicense: MIT\n"
        "allowed-tools: [bash]\nhomepage: https://a.example\nmetadata: {a: 1}",
    )
    found = own(tmp_path, env={"HOME": "/h"}).offered()
    assert [s.name for s in found] == ["apple", "zebra"]
    assert found[0].description == "Peel it."
    assert dict(found[0].extra) == {
        "license": "MIT", "allowed-tools": ["bash"], "homepage": "https://a.example", "metadata": {"a": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("name: broken\ndescription: [unclosed", "does not parse"),
        ("name: broken\nname: broken\ndescription: twice", "does not parse"),
        ("name: broken\ndescription: !!python/object:os.system x", "does not parse"),
        ("just text", "'key: value'"),
        ("name: other\ndescription: D", "the directory is 'broken'"),
        ("name: Broken!\ndescription: D", "lower-case"),
        ("name: broken", "description must be"),
        ("name: broken\ndescription: ''", "description must be"),
        (f"name: broken\ndescription: {'d' * 1025}", "description must be"),
        ("name: broken\ndescription: D\nrequires_env: {a: 1}", "requires_env must be"),
        ("name: broken\ndescription: D\nrequires_env: [UNSET_X]", "UNSET_X is not set"),
        ("name: broken\ndescription: D\nrequires_env: [EMPTY_X]", "EMPTY_X is not set"),
        ("name: broken\ndescription: D\nrequires_bridge: spotify", "bridge 'spotify' is not configured"),
        (f"name: broken\ndescription: D\nx: {'y' * 17_000}", "front matter"),
    ],
)
def test_a_skill_that_is_not_right_is_hidden_with_its_reason(tmp_path: Path, front: str, told: str) -> None:
    """AS-45: no repair, and its neighbours stay."""
    write(tmp_path, "broken", front)
    write(tmp_path, "good")
    library = own(tmp_path, env={"EMPTY_X": ""})
    assert [s.name for s in library.offered()] == ["good"]
    hidden = next(s for s in library.all() if s.name == "broken")
    assert hidden.hidden is not None
    assert told in hidden.hidden


def test_a_skill_beyond_the_thousandth_is_named_with_the_reason(tmp_path: Path) -> None:
    for number in range(1_001):
        write(tmp_path, f"s{number:04}")
    library = own(tmp_path)
    assert len(library.offered()) == 1_000
    [left] = [skill for skill in library.all() if skill.hidden is not None]
    assert left.name == "s1000" and left.hidden == "not read: a directory of skills has at most 1,000"


def test_a_configured_bridge_shows_the_skill(tmp_path: Path) -> None:
    write(tmp_path, "music", "name: music\ndescription: D\nrequires_bridge: [spotify]")
    assert own(tmp_path, bridges=frozenset({"spotify"})).get("music") is not None


@pytest.mark.parametrize("text", ["no front matter", "---\nname: bare\ndescription: D\n", ""])
def test_a_file_without_front_matter_is_hidden(tmp_path: Path, text: str) -> None:
    (tmp_path / "skills" / "bare").mkdir(parents=True)
    (tmp_path / "skills" / "bare" / "SKILL.md").write_text(text)
    assert own(tmp_path).offered() == []
    assert own(tmp_path).all()[0].hidden is not None


def test_new_and_changed_skills_are_seen_at_once(tmp_path: Path) -> None:
    """AS-46."""
    library = own(tmp_path)
    assert library.offered() == []
    directory = write(tmp_path, "late")
    assert [s.name for s in library.offered()] == ["late"]
    (directory / "SKILL.md").write_text("---\nname: late\ndescription: Changed.\n---\n")
    assert library.offered()[0].description == "Changed."


def test_a_missing_directory_leaves_the_bundled_skills(tmp_path: Path) -> None:
    """CF-34."""
    names = [s.name for s in SkillLibrary(tmp_path).offered()]
    assert names == ["code-review", "data-files"]
    assert all(s.hidden is None for s in SkillLibrary(None).all())


def test_a_workspace_skill_hides_the_bundled_one_of_its_name(tmp_path: Path) -> None:
    write(tmp_path, "code-review", "name: code-review\ndescription: Ours.")
    library = SkillLibrary(tmp_path)
    assert library.get("code-review") is not None
    assert [s.hidden is None for s in library.all() if s.name == "code-review"] == [True, False]
    found = library.get("code-review")
    assert found is not None
    assert found.description == "Ours."


def test_the_prompt_holds_at_most_16_kib_and_counts_the_rest() -> None:
    """AS-46."""
    many = [Skill(f"s{n:03d}", "d" * 500, Path("x")) for n in range(100)]
    text = prompt_lines(many)
    assert len(text.encode()) <= 16 * 1024
    shown = text.splitlines()
    assert shown[0].startswith("s000: ddd")
    assert shown[-1] == f"({100 - (len(shown) - 1)} more; list_skills shows all)"
    assert prompt_lines([]) == ""


async def test_list_skills_shows_all(tmp_path: Path) -> None:
    """TO-32."""
    write(tmp_path, "one")
    (tool,) = (t for t in skill_tools(own(tmp_path)) if t.name == "list_skills")
    assert (await tool.call({}, NOTHING)).content == "one: About one."


async def test_read_skill_gives_body_and_file_names(tmp_path: Path) -> None:
    """TO-33."""
    directory = write(tmp_path, "one", body="# How\n\nSteps.\n")
    for path in ("scripts/run.py", "references/deep/a.md", "assets/p.png", "other/no.txt"):
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(path)
    result = await read(own(tmp_path), name="one")
    assert '<skill name="one" path="SKILL.md">\n# How\n\nSteps.\n</skill>' in result.text
    assert "description: About" not in result.text
    assert result.data is not None
    assert result.data["files"] == ["scripts/run.py", "references/deep/a.md", "assets/p.png"]
    assert "scripts/run.py" in (await read(own(tmp_path), skill="one", path="scripts/run.py")).text


@pytest.mark.parametrize(
    "path", ["../two/SKILL.md", "/etc/passwd", "scripts/out", "scripts", "gone.txt", "a\0b"]
)
async def test_a_path_outside_the_skill_is_refused(tmp_path: Path, path: str) -> None:
    """TO-33: confined."""
    directory = write(tmp_path, "one")
    write(tmp_path, "two", body="SECRET")
    (directory / "scripts").mkdir()
    (directory / "scripts" / "out").symlink_to("/etc/passwd")
    result = await read(own(tmp_path), skill="one", path=path)
    assert result.is_error
    assert "SECRET" not in result.text
    assert "root:" not in result.text


async def test_an_unknown_skill_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    """TO-33."""
    write(tmp_path, "data-cleaning")
    result = await read(own(tmp_path), skill="data-cleanin")
    assert result.is_error
    assert "the nearest are data-cleaning" in result.text


def test_every_bundled_skill_names_only_tools_that_exist() -> None:
    import re

    from bowerbird.tools.names import BUILTIN_NAMES

    library = SkillLibrary(None)
    for skill in library.all():
        words = set(re.findall(r"`([a-z]+_[a-z_]+)`", library.body(skill)))
        assert words <= BUILTIN_NAMES, skill.name


def test_skills_for_other_agents_are_the_projects_own_and_each_is_shown_once(tmp_path: Path) -> None:
    """`.agents/skills` of Codex, `.claude/skills` of Claude Code; one often is a link to the other."""
    write(tmp_path, "mine")
    write(tmp_path / ".agents", "deploy", "description: Deploy it.")
    write(tmp_path / ".agents", "mine", "name: mine\ndescription: Not this one.")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "skills").symlink_to("../.agents/skills")
    library = own(tmp_path)
    assert [(s.name, s.description) for s in library.offered()] == [
        ("deploy", "Deploy it."), ("mine", "About mine."),
    ]  # fmt: skip
    assert len(library.all()) == 3


def test_a_skill_that_only_people_may_call_is_not_offered(tmp_path: Path) -> None:
    write(tmp_path / ".claude", "ship", "description: Ship it.\ndisable-model-invocation: true")
    library = own(tmp_path)
    assert library.offered() == [] and "disable-model-invocation" in str(library.all()[0].hidden)


def test_a_directory_of_skills_outside_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "theirs")
    (tmp_path / "here" / ".claude").mkdir(parents=True)
    (tmp_path / "here" / ".claude" / "skills").symlink_to(tmp_path / "elsewhere" / "skills")
    assert own(tmp_path / "here").all() == []
