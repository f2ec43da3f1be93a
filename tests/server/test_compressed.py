"""Answers on a slow network (UI-93): compressed for whoever takes it, the same for everybody."""

import gzip
import json

import httpx
from support.servers import TestServer, begin


def raw(client: httpx.Client, path: str, **headers: str) -> tuple[httpx.Headers, bytes]:
    """An answer's headers, and its body as it came over the wire."""
    with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code in (200, 206)
        return answer.headers, b"".join(answer.iter_raw())


def test_a_large_answer_is_compressed_where_it_is_taken(client: httpx.Client) -> None:
    plain, whole = raw(client, "/openapi.json", **{"accept-encoding": "identity"})
    assert "content-encoding" not in plain
    head, small = raw(client, "/openapi.json", **{"accept-encoding": "gzip, br"})
    assert head["content-encoding"] == "gzip" and "Accept-Encoding" in head["vary"]
    assert int(head["content-length"]) == len(small) < len(whole) / 4
    assert json.loads(gzip.decompress(small)) == json.loads(whole)
    assert "content-encoding" not in raw(client, "/openapi.json", **{"accept-encoding": "gzip;q=0"})[0]


def test_a_small_answer_and_a_persons_file_go_out_as_they_are(
    server: TestServer, client: httpx.Client
) -> None:
    """A file has a version and ranges, which are of its own bytes."""
    conversation = begin(client)
    data = json.dumps({"a": "b" * 10_000}).encode()
    (server.workspace / "data.json").write_bytes(data)
    assert "content-encoding" not in raw(client, f"/api/conversations/{conversation}")[0]
    head, body = raw(client, f"/api/files/{conversation}/data.json", range="bytes=0-3")
    assert (body, "content-encoding" in head) == (data[:4], False)
    whole_head, whole = raw(client, f"/api/files/{conversation}/data.json")
    assert (whole, "content-encoding" in whole_head) == (data, False)
