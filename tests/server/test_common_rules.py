"""Rules of every route: SV-1 … SV-5, SV-34, SV-57; acceptance 14 and issue 4's generated checks of REST."""

import asyncio
import html
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.openapi.models import OpenAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from support.patience import HANG_S
from support.servers import TestServer, begin, free_port, serve, until

from bowerbird.store.rows.tokens import make_token

MALFORMED: list[tuple[str, str, bytes, str]] = [
    ("POST", "/api/chat", body, kind)
    for kind, bodies in {
        "application/json": [
            b"{", b"[]", b"5", b'"x"', b"true", b'{"title":', b'{"title":1e999}', b"\xff\xfe", b"[" * 100_000,
            b'{"title":"\\ud800"}', b'{"title":"\\u0000"}', b'{"enable_teams":"yes"}', b'{"enable_teams":1}',
            b'{"preset":{}}', b'{"model":[]}', b'{"thinking_effort":"MAX"}', b'{"title":"' + b"x" * 501 + b'"}',
            b'{"a":NaN}', b'{"title":null,"title":5}', b'{"workspace":"../.."}',
        ],
        "text/plain": [b"hello", b"{}"],
        "application/xml": [b"<a/>"],
        "multipart/form-data": [b"x"],
        "application/json; charset=utf-16": ["{}".encode("utf-16")],
    }.items()
    for body in bodies
] + [
    ("POST", "/api/conversations/{id}/messages", body, "application/json")
    for body in [
        b"", b"null", b"{}", b'{"content":""}', b'{"content":"  "}', b'{"content":{}}', b'{"content":["a"]}',
        b'{"content":"x","kind":"answer"}', b'{"content":"x","extra":1}', b'{"content":"x","attachments":5}',
        b'{"content":"x","attachments":[{}]}', b'{"content":"x","attachments":[{"url":"http://a/b.png"}]}',
        b'{"content":"x","attachments":[{"path":"../../etc/passwd"}]}',
        b'{"content":"x","attachments":[{"path":"nothing.png"}]}',
    ]
] + [
    ("PATCH", "/api/conversations/{id}", b'{"title":""}', "application/json"),
    ("PATCH", "/api/conversations/{id}", b'{"enable_plan_mode":"on"}', "application/json"),
    ("POST", "/api/conversations/{id}/land", b'{"paths":"a"}', "application/json"),
    ("POST", "/api/conversations/{id}/land", b'{"paths":["a\\u0000b"]}', "application/json"),
    ("POST", "/api/conversations/{id}/land", b'{"hunks":["h_no"]}', "application/json"),
    ("POST", "/api/conversations/{id}/discard", b'{"paths":[]}', "application/json"),
    ("POST", "/api/conversations/{id}/comments", b'{"comments":[{"path":"../x","line":0,"text":"t"}]}', "application/json"),
    ("PUT", "/api/budgets", b'{"scope":"session","limit_usd":-1}', "application/json"),
    ("PUT", "/api/budgets", b'{"scope":"moon","limit_usd":1}', "application/json"),
    ("POST", "/api/approvals/r_x", b'{"decision":7}', "application/json"),
    ("POST", "/api/workspace/upload", b"--b--", "multipart/form-data; boundary=b"),
    ("POST", "/api/workspace/upload", b"", "multipart/form-data"),
    ("POST", "/api/workspace/upload", b"\0" * 100, "multipart/form-data; boundary=" + "b" * 300),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"), MALFORMED, ids=[f"{m} {p} {b[:30]!r}" for m, p, b, _ in MALFORMED]
)
def test_a_malformed_body_is_a_clean_4xx(
    client: httpx.Client, method: str, path: str, body: bytes, kind: str
) -> None:
    """Issue 4, must show 4: never a 5xx, never a lost session."""
    conversation = begin(client)
    answer = client.request(
        method, path.format(id=conversation), content=body, headers={"content-type": kind}
    )
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        shown = answer.json()
        assert isinstance(shown["detail"], list) == (answer.status_code == 422)
        assert "Traceback" not in answer.text and "SELECT" not in answer.text
    assert client.get(f"/api/conversations/{conversation}").status_code == 200


def test_errors_have_one_form_and_show_no_server_path(server: TestServer, client: httpx.Client) -> None:
    """SV-1, SV-4."""
    for answer in (
        client.get("/api/nothing"), client.get("/api/conversations/0123"), client.put("/api/conversations"),
        client.get("/api/workspace/file/none.txt"), client.post("/api/landings/l_x/undo"),
    ):  # fmt: skip
        assert set(answer.json()) == {"detail", "code"}, answer.text
        assert str(server.data_dir) not in answer.text and str(server.workspace) not in answer.text


def test_a_wrong_method_is_405_with_every_method_that_exists(client: httpx.Client) -> None:
    """SV-4; HEAD wherever there is GET (server 13)."""
    for path, allowed in [
        ("/api/conversations/x", {"GET", "HEAD", "DELETE", "PATCH"}),
        ("/api/skills", {"GET", "HEAD", "POST"}), ("/api/budgets", {"GET", "HEAD", "PUT"}),
        ("/health", {"GET", "HEAD"}), ("/api/conversations/x/land", {"POST"}),
    ]:  # fmt: skip
        answer = client.request("TRACE", path)
        assert answer.status_code == 405, path
        assert set(answer.headers["allow"].split(", ")) == allowed


def test_a_body_over_2_mib_is_413(client: httpx.Client) -> None:
    """SV-2: by its declared length, and as it streams."""
    large = b'{"title":"' + b"x" * (2 << 20) + b'"}'
    for content in (large, iter([large[:100], large[100:]])):
        answer = client.post("/api/chat", content=content, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_bug_is_a_500_with_an_id_that_is_in_the_log(
    server: TestServer, client: httpx.Client, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """SV-1: the skills directory is a file, which nobody foresaw."""
    place = server.workspace / "skills"
    place.write_text("in the way") if not place.exists() else pytest.skip("skills exist")
    try:
        answer = client.post("/api/skills", json={"name": "a", "description": "d", "body": "b"})
    finally:
        place.unlink()
    assert answer.status_code == 500 and "Traceback" not in answer.text
    assert answer.json()["request_id"] in caplog.text and str(server.workspace) not in answer.text


# ---------------------------------------------------------------- repeated requests


def test_a_repeated_request_gets_the_first_answer_and_does_nothing(client: httpx.Client) -> None:
    """SV-3."""
    key = {"Idempotency-Key": "once-1"}
    first = client.post("/api/chat", json={"title": "once"}, headers=key)
    again = client.post("/api/chat", json={"title": "once"}, headers=key)
    assert again.json() == first.json() and again.headers["idempotency-replayed"] == "true"
    other = client.post("/api/chat", json={"title": "twice"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")
    elsewhere = client.delete(f"/api/conversations/{first.json()['conversation_id']}", headers=key)
    assert elsewhere.json()["code"] == "key_reused"
    assert client.post("/api/chat", headers={"Idempotency-Key": "x" * 256}).status_code == 422


def test_requests_repeated_at_once_do_the_thing_once(server: TestServer, client: httpx.Client) -> None:
    """SV-3, SE-17."""
    conversation = begin(client)
    url, body = f"/api/conversations/{conversation}/messages", {"content": "only once"}
    headers = {"Idempotency-Key": "at-once"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.post(url, json=body, headers=headers).json(), range(8)))
    assert all(answer == answers[0] for answer in answers)
    until(
        lambda: client.get(f"/api/conversations/{conversation}").json()["status"] == "done", "it is answered"
    )
    said = client.get(f"/api/conversations/{conversation}").json()["messages"]
    assert [m["content"] for m in said] == ["only once", "hello"]


def test_a_repeated_upload_is_recognised_by_its_bytes(client: httpx.Client) -> None:
    """SV-3: although it is never held in memory."""

    def upload(content: bytes) -> httpx.Response:
        body = (
            b'--b\r\nContent-Disposition: form-data; name="files"; filename="k"\r\n\r\n'
            + content
            + b"\r\n--b--\r\n"
        )
        return client.post(
            "/api/workspace/upload", content=body,
            headers={"content-type": "multipart/form-data; boundary=b", "Idempotency-Key": "upload-1"},
        )  # fmt: skip

    first = upload(b"same")
    landings = len(client.get("/api/landings").json())
    assert upload(b"same").json() == first.json() == {"uploaded": ["k"]}
    assert len(client.get("/api/landings").json()) == landings
    assert upload(b"other").json()["code"] == "key_reused"


# ---------------------------------------------------------------- health, metrics


def test_health_says_why_the_server_is_not_ready(server: TestServer, client: httpx.Client) -> None:
    """SV-34."""
    assert client.get("/health/live").json() == {"status": "ok"}
    assert client.get("/health/ready").status_code == 200
    draining = server.serving.context.life.draining
    server.loop.call_soon_threadsafe(draining.set)
    try:
        until(lambda: client.get("/health/ready").status_code == 503, "it drains")
        shown = client.get("/health/ready").json()
        assert shown["code"] == "not_ready" and shown["reasons"] == ["the server is shutting down"]
        assert client.get("/health").status_code == 200
    finally:
        server.loop.call_soon_threadsafe(draining.clear)
    until(lambda: client.get("/health/ready").status_code == 200, "it is back")


def test_metrics_count_by_route_and_name_nobody(client: httpx.Client) -> None:
    """SV-34."""
    conversation = begin(client)
    client.get(f"/api/conversations/{conversation}")
    text = client.get("/metrics").text
    assert 'route="/api/conversations/{conversation_id}"' in text
    assert conversation not in text


# ---------------------------------------------------------------- the command


def serve_command(directory: Path, port: int, **env: str) -> subprocess.Popen[str]:
    here = directory / "here"  # a home is no directory to serve
    here.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "bowerbird.cli.main", "serve", "--port", str(port)],
        cwd=here, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), **env},
    )  # fmt: skip


def test_the_command_serves_what_the_environment_says_and_ends_on_a_signal(tmp_path: Path) -> None:
    """UI-46, SE-34: DATABASE_URL, WORKSPACE_DIR, MODEL; a turn that runs is left resumable."""
    from support.fake_models import FakeModels

    port = free_port()
    with FakeModels() as fake:
        fake.script({"hang": True})
        process = serve_command(
            tmp_path, port, LLM_PROVIDER="openai", OPENAI_API_KEY="k", OPENAI_BASE_URL=fake.openai_url,
            MODEL="gpt-x", WORKSPACE_DIR=str(tmp_path / "here"), BOWERBIRD_SHUTDOWN__GRACE_S="0.5",
            DATABASE_URL=f"sqlite+aiosqlite:///{tmp_path}/state/x.db", BOWERBIRD_STORE__MIN_FREE_MB="0",
        )  # fmt: skip
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S) as http:
                until(lambda: _answers(http), "it serves", 60)
                assert http.get("/health").json()["model"] == "gpt-x"
                conversation = begin(http)
                http.post(f"/api/conversations/{conversation}/messages", json={"content": "hang"})
                fake.wait_requests(1)
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=HANG_S)
        finally:
            process.kill()
            process.wait()
        assert f"http://127.0.0.1:{port}" in said and "Traceback" not in said
        assert process.returncode in (0, -signal.SIGTERM, 143)
    assert (tmp_path / "state/x.db").is_file() and (tmp_path / "here").is_dir()


def _answers(http: httpx.Client) -> bool:
    try:
        return http.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def test_an_open_address_without_auth_is_refused_with_both_remedies(tmp_path: Path) -> None:
    """SV-57: exit 78."""
    process = serve_command(tmp_path, free_port(), BOWERBIRD_SERVER__HOST="0.0.0.0")
    said, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 78
    assert "server.auth" in said and "server.insecure" in said


def test_an_address_that_is_taken_is_said(tmp_path: Path, server: TestServer) -> None:
    port = int(server.url.rpartition(":")[2])
    process = serve_command(tmp_path, port, ANTHROPIC_API_KEY="k")
    said, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 1 and f"127.0.0.1:{port}" in said and "Traceback" not in said


# ---------------------------------------------------------------- the description


def test_every_route_is_described_with_its_errors(client: httpx.Client) -> None:
    """SV-4."""
    described = client.get("/openapi.json").json()
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"] and {"401", "403", "429", "500", "503"} <= set(operation["responses"])
            keyed = [p for p in operation.get("parameters", ()) if p["name"] == "Idempotency-Key"]
            assert bool(keyed) == (method in ("post", "put", "patch", "delete")), (method, path)


def test_the_page_of_the_description_needs_nothing_else(client: httpx.Client) -> None:
    """SV-4, SV-59: every route is on it; under our policy nothing of it is blocked."""
    answer = client.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "<script" not in answer.text
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", answer.text)
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        assert f"<code>{path}</code>" in answer.text
        for operation in operations.values():
            assert html.escape(operation["summary"]) in answer.text
    links = set(re.findall(r'href="#([^"]+)"', answer.text))
    assert links <= set(re.findall(r'id="([^"]+)"', answer.text))


def test_a_server_that_was_given_no_version_says_its_own(tmp_path: Path) -> None:
    """SV-4, SV-6: `info.version` of the description is never empty."""
    from bowerbird import __version__
    from bowerbird.app.serving import open_server
    from bowerbird.config import load_settings

    flags = {"agent.workspace": str(tmp_path / "ws"), "agent.data_dir": str(tmp_path / "data"),
             "provider.api_key": "k"}  # fmt: skip
    loaded = load_settings(flags, env={}, cwd=tmp_path, kind="serve", home=tmp_path)

    async def opened() -> tuple[str, Any]:
        async with open_server(loaded) as serving:
            return serving.context.version, serving.app.openapi()

    version, described = asyncio.run(opened())
    assert version == __version__ == described["info"]["version"]
    OpenAPI.model_validate(described)


@pytest.mark.parametrize(("auth", "kind"), [("none", "NEGATIVE"), ("token", "POSITIVE")])
def test_generated_requests_meet_the_description(tmp_path: Path, auth: str, kind: str) -> None:
    """Acceptance 14, bounded: requests that fit, and such that do not; each at both doors: scripts/check_api.py."""
    import schemathesis  # takes seconds, and every worker imports every file

    # Addresses as long as those that are generated are refused before any route hears of them.
    flags = {"server.auth": auth, "sandbox.tier": "none", "server.header_kb": 1024}
    with serve(tmp_path, flags=flags) as server:
        headers = {}
        if auth == "token":
            store = server.serving.context.store
            _, secret = server.run(store.write(lambda c: make_token(c, "check", "admin")))
            headers = {"Authorization": f"Bearer {secret}"}
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json", headers=headers)
        failures: list[str] = []
        for result in schema.get_all_operations():
            operation = result.ok()
            # Streams do not end by themselves; without a sandbox the server is never ready.
            if not operation.path.endswith(("/events", "/health/ready")):
                failures += _failures(operation, headers, kind)
    assert not failures, "\n\n".join(failures)


# What a zip file is, and what a point on a curve: what is generated is none, and rightly refused.
NO_SCHEMA_SAYS = ("/api/skills/archive", "/api/push")


def _failures(operation: Any, headers: dict[str, str], kind: str) -> list[str]:
    """What is wrong with the answers to a few generated requests; every operation is tried."""
    from schemathesis import GenerationMode

    if kind == "POSITIVE" and operation.path.startswith(NO_SCHEMA_SAYS):
        return []

    @settings(
        max_examples=2, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=GenerationMode[kind]))
    def check(case: Any) -> None:
        case.call_and_validate(timeout=HANG_S, headers=headers)

    try:
        check()
    except Unsatisfiable:
        return []  # nothing about this operation can be wrong
    except Exception as error:  # noqa: BLE001 - all failures are shown together
        return [f"{operation.method} {operation.path}: {error}"]
    return []
