"""`bowerbird state export` and `bowerbird state import` (SE-45, SE-46)."""

import json
import shutil


def test_sessions_go_out_and_come_back_with_their_exit_codes(here):
    here.fake.script({"text": "Hello!"})
    assert here.run("run", "hi")[0] == 0
    out = here.home / "out"
    said = here.ok("state", "export", str(out))
    assert "1 sessions" in said
    code, _, err = here.run("state", "export", str(out))
    assert code != 0 and "--force" in err
    here.ok("state", "export", str(out), "--force", "--json")
    report = json.loads(here.ok("state", "import", str(out), "--json"))
    assert sum(file["imported"] for file in report["files"]) == 0
    elsewhere = ("--data-dir", str(here.home / "elsewhere"))
    assert "1 would be imported" in here.ok("state", "import", str(out), "--dry-run", *elsewhere)
    assert "1 imported" in here.ok("state", "import", str(out), *elsewhere)
    (out / "session_counters.json").write_text('{"telegram_1": "many"}')
    assert here.run("state", "import", str(out), *elsewhere)[0] == 3
    shutil.rmtree(out)
    out.mkdir()
    (out / "session_counters.json").write_text("{")
    assert here.run("state", "import", str(out), *elsewhere)[0] == 1
    assert here.run("state", "import", str(here.home / "nowhere"))[0] == 2
