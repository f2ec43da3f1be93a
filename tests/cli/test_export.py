"""`bowerbird export` and `/export`, by each client (UI-80, UI-85)."""

import html.parser
import json

HOSTILE = 'Look: <script>alert(1)</script> <img src=x onerror=alert(2)> \x1b]0;owned\x07 "quoted" &amp;\n```\n# fake\n'


class Tags(html.parser.HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


def talk(desk):
    (desk.project / "page.html").write_text(HOSTILE)
    desk.edit({"name": "read_file", "input": {"path": "page.html"}}, answer=HOSTILE)
    desk.ok("read <b>it</b>", "-q")


def test_a_conversation_becomes_one_page_that_runs_nothing(desk):
    """UI-80: whatever a model, a tool or a person wrote is text."""
    talk(desk)
    page = desk.ok("export", "--html")
    tags = Tags()
    tags.feed(page)
    assert tags.seen <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "article", "pre", "details", "summary",
    }  # fmt: skip
    assert not any(name.startswith("on") or name in ("src", "href") for name in tags.attributes)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "read &lt;b&gt;it&lt;/b&gt;" in page
    assert "default-src 'none'" in page and "\x1b" not in page and "read_file page.html" in page


def test_markdown_and_json_hold_everything(desk):
    """UI-80: a result cannot close its fence; no escape reaches a terminal."""
    talk(desk)
    text = desk.ok("export")
    assert text.startswith("# ") and "> read <b>it</b>" in text and "````text\n" in text
    assert "\x1b" not in text
    found = json.loads(desk.ok("export", "--json"))
    assert [message["role"] for message in found["messages"]][:2] == ["user", "assistant"]
    assert found["conversation"]["id"] and found["messages"][0]["content"] == "read <b>it</b>"


def test_a_file_is_written_once_in_the_form_of_its_name(desk):
    """UI-80: nothing is replaced, two forms at once are refused."""
    talk(desk)
    desk.ok("export", "-o", "talk.html")
    assert (desk.project / "talk.html").read_text().startswith("<!doctype html>")
    code, _, err = desk.run("export", "-o", "talk.html")
    assert code == 2 and "there already" in err
    assert desk.run("export", "--md", "--html")[0] == 2


def test_the_prompt_exports_and_begins_instructions(desk):
    """UI-79, UI-80: AGENTS.md is written on the branch, after a review it lands."""
    with desk.terminal(columns=100) as chat:
        chat.wait_for("lists commands")
        desk.edit(
            {"name": "write_file", "input": {"path": "AGENTS.md", "content": "# Here\n"}}, answer="Written."
        )
        chat.send("/init\r")
        chat.wait_for("Written.")
        chat.wait_for("1 file changed: /diff")
        assert "write AGENTS.md at its top" in str(desk.fake.requests[0]["messages"])
        assert not (desk.project / "AGENTS.md").exists()
        chat.send("/export talk.md\r")
        chat.wait_for("written: talk.md")
        assert "Written." in (desk.project / "talk.md").read_text()
        chat.send("\x04")
        chat.wait()


def test_instructions_for_agents_are_written_on_a_branch(desk, written):
    """UI-79: `init --project` is `/init` without a chat; nothing lands by itself."""
    desk.edit(written("AGENTS.md", "# Shop\n"), answer="AGENTS.md is written.")
    assert json.loads(desk.ok("init", "--project", "--json"))["answer"] == "AGENTS.md is written."
    assert "coding agents that begin here" in str(desk.fake.requests[0]["messages"])
    assert not (desk.project / "AGENTS.md").exists()
    desk.ok("land", "--yes", "--accept", "AGENTS.md")
    assert (desk.project / "AGENTS.md").read_text() == "# Shop\n"
