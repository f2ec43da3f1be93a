"""Dockerfile, compose.yaml and .env.example fit the program (AS-65); there is no Docker here to build them with."""

import re
import shlex
from pathlib import Path

from ruamel.yaml import YAML
from support.desk import Desk
from support.fake_models import FakeModels
from support.servers import serve

from bowerbird.config import load_settings
from bowerbird.config.keys import walk

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def _image_environment() -> dict[str, str]:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    words = [word for line in re.findall(r"^ENV (.*)$", last_stage, re.M) for word in shlex.split(line)]
    return dict(word.split("=", 1) for word in words)


def test_the_image_s_environment_makes_a_server_that_others_reach_only_with_a_token(tmp_path):
    loaded = load_settings(kind="serve", env=_image_environment(), cwd=tmp_path, home=tmp_path)
    settings = loaded.settings
    assert (settings.server.host, settings.server.auth) == ("0.0.0.0", "token")
    assert (settings.agent.data_dir, settings.agent.workspace) == ("/data", "/workspace")
    assert not loaded.warnings
    assert re.search(r"^USER bowerbird$", DOCKERFILE, re.M) and "--uid 10001" in DOCKERFILE


def test_every_variable_of_the_example_is_one_that_settings_read():
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    names = set(re.findall(r"^(?:# )?([A-Z][A-Z_]+)=", text, re.M))
    known = {name for info in walk() for name in info.env} | {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}
    known |= {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"}
    assert len(names) > 20 and names <= known


def test_the_example_as_it_stands_loads_without_a_complaint(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here/.env").write_text((ROOT / ".env.example").read_text(encoding="utf-8"))
    loaded = load_settings(kind="serve", env={}, cwd=tmp_path / "here", home=tmp_path, env_file=".env")
    assert not [warning for warning in loaded.warnings if "others can read" not in warning]


def test_compose_mounts_directories_and_stops_later_than_the_server_does():
    service = YAML(typ="safe").load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"][
        "bowerbird"
    ]
    targets = [volume.split(":")[1] for volume in service["volumes"]]
    assert targets == ["/config", "/data", "/workspace"] and service["volumes"][0].endswith(":ro")
    grace = load_settings(kind="serve", env={}, cwd="/srv", home="/nonexistent").settings.shutdown.grace_s
    assert int(service["stop_grace_period"].removesuffix("s")) >= grace + 2
    assert service["ports"][0].startswith("127.0.0.1:")


def test_the_image_s_user_is_given_what_it_writes_to():
    """Docker makes a directory that is missing for root alone; the page and the file say what to type before."""
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    volumes = YAML(typ="safe").load(text)["services"]["bowerbird"]["volumes"]
    written = {volume.split(":")[0].removeprefix("./") for volume in volumes if not volume.endswith(":ro")}
    for said in (text, (ROOT / "docs/deploying.md").read_text(encoding="utf-8")):
        given = re.search(r"mkdir -p ([\w ]+) && sudo chown 10001 ([\w ]+)", said)
        assert given and written <= set(given[1].split()) and written == set(given[2].split())


def test_the_health_check_asks_what_the_server_answers(tmp_path):
    path = re.search(r"http://127\.0\.0\.1:8000(/\S+?)'", DOCKERFILE)
    with serve(tmp_path) as server, server.http as http:
        assert path and http.get(path[1]).status_code == 200


def test_the_command_of_the_comment_makes_a_token(tmp_path):
    line = re.search(r"exec bowerbird bowerbird (.*)", (ROOT / "compose.yaml").read_text(encoding="utf-8"))
    with FakeModels() as fake:
        assert line and "bb_" in Desk(tmp_path, fake).ok(*line[1].split())
