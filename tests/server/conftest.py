"""One real server per module, and a client of it."""

from collections.abc import Iterator

import httpx
import pytest
from support.servers import TestServer, serve


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestServer]:
    with serve(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def client(server: TestServer) -> Iterator[httpx.Client]:
    server.fake.script({"text": "hello"})
    with server.http as http:
        yield http
