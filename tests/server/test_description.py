"""What programs that generate clients need of /openapi.json (team 16, SV-4)."""

from typing import Any

import httpx
import jsonschema_rs
import pytest
from support.servers import TestServer, change

FREE = {  # members whose form is somebody else's: tools, models, users
    ("CallRow", "input"), ("ToolShown", "input_schema"), ("CallShown", "input"), ("ToolAsked", "input"), ("TaskShown", "metadata"),
    ("SettingShown", "value"), ("SettingShown", "default"), ("NewSettings", "values"),
    ("AgentRunWanted", "context"),
}  # fmt: skip
TEXTS = ("text/event-stream", "application/x-ndjson", "application/octet-stream", "text/x-diff", "text/plain",
         "text/html")  # fmt: skip


@pytest.fixture
def described(client: httpx.Client) -> dict[str, Any]:
    return client.get("/openapi.json").json()


def operations(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{m} {p}": op for p, ops in described["paths"].items() for m, op in ops.items()}


def loose(schema: dict[str, Any]) -> bool:
    """Whether a schema says nothing of what is in it."""
    if not set(schema) - {"title", "description", "default"}:
        return True
    forms = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    is_map = schema.get("type") == "object" and "properties" not in schema
    return (is_map and schema.get("additionalProperties") in (None, True)) or any(map(loose, forms))


def test_every_operation_has_a_name_of_its_own_and_typed_answers(described: dict[str, Any]) -> None:
    """team 16"""
    every = operations(described)
    ids = [operation["operationId"] for operation in every.values()]
    assert len(set(ids)) == len(ids) and all(name.replace("_", "a").isalnum() for name in ids)
    for name, operation in every.items():
        good = {s: r for s, r in operation["responses"].items() if s.startswith("2")}
        assert good, name
        for status, response in good.items():
            content = response.get("content", {})
            assert content or status == "204", (name, status)
            for kind, shown in content.items():
                if kind == "application/json":
                    assert shown.get("schema") and not loose(shown["schema"]), (name, status)
                else:
                    assert kind in TEXTS, (name, kind)
            assert len(content) <= 1 or "text/event-stream" in content, (name, list(content))
        errors = [r for s, r in operation["responses"].items() if s[0] in "45"]
        assert errors, name
        for response in errors:
            assert "$ref" in response["content"]["application/json"]["schema"], name


def test_a_body_that_may_be_left_out_is_never_null(described: dict[str, Any]) -> None:
    """team 16: seven operations of a generated client crashed without their optional body."""
    optional = 0
    for name, operation in operations(described).items():
        body = operation.get("requestBody")
        if body is None:
            continue
        optional += not body.get("required", False)
        for content in body["content"].values():
            assert {"type": "null"} not in content["schema"].get("anyOf", ()), name
    assert optional >= 7


def test_members_of_answers_are_typed(described: dict[str, Any]) -> None:
    """team 16"""
    schemas = described["components"]["schemas"]
    found = {
        (name, m) for name, s in schemas.items() for m, of in s.get("properties", {}).items() if loose(of)
    }
    assert found <= FREE, found - FREE


def test_a_patch_has_a_route_of_its_own(client: httpx.Client) -> None:
    """team 16: one status with two media types cannot be told apart by a generated client."""
    conversation = client.post("/api/chat").json()["conversation_id"]
    patch = client.get(f"/api/conversations/{conversation}/patch")
    assert patch.status_code == 200 and patch.headers["content-type"].startswith("text/x-diff")
    same = client.get(f"/api/conversations/{conversation}/diff", params={"format": "unified"})
    assert same.text == patch.text and same.headers["content-type"] == patch.headers["content-type"]


def test_answers_are_what_the_description_says(
    server: TestServer, client: httpx.Client, described: dict[str, Any]
) -> None:
    """team 16: a typed client reads exactly these members."""
    (server.workspace / "m.txt").write_text("one\ntwo\n")
    conversation = change(server, client, {"m.txt": "one\n2\n", "n.txt": "n\n"})
    url = f"/api/conversations/{conversation}"

    def checked(answer: httpx.Response, route: str, method: str = "get") -> Any:
        assert answer.status_code < 300, answer.text
        shown = described["paths"][route][method]["responses"][str(answer.status_code)]
        schema = {**shown["content"]["application/json"]["schema"], "components": described["components"]}
        jsonschema_rs.validator_for(schema).validate(answer.json())
        return answer.json()

    base = "/api/conversations/{conversation_id}"
    checked(client.get(f"{url}/diff"), f"{base}/diff")
    checked(client.get(f"{url}/landing-plan"), f"{base}/landing-plan")
    checked(client.get(url), base)
    turns = checked(client.get(f"{url}/turns"), f"{base}/turns")["turns"]
    checked(client.get(f"{url}/turns/{turns[0]['turn_id']}"), f"{base}/turns/{{turn_id}}")
    checked(client.get(f"{url}/messages"), f"{base}/messages")
    landed = checked(client.post(f"{url}/land"), f"{base}/land", "post")
    checked(client.get("/api/landings"), "/api/landings")
    checked(client.get(f"/api/landings/{landed['id']}/diff"), "/api/landings/{landing_id}/diff")
    checked(client.post(f"/api/landings/{landed['id']}/undo"), "/api/landings/{landing_id}/undo", "post")
    checked(client.post(f"{url}/fork"), f"{base}/fork", "post")
    for by in ("day", "model", "user", "conversation"):
        checked(client.get("/api/usage", params={"by": by}), "/api/usage")
    for route in (
        "/api/tools",
        "/api/skills",
        "/api/approvals",
        "/api/conversations",
        "/api/workspace/files",
    ):
        checked(client.get(route), route)
