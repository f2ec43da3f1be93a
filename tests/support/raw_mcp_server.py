"""An MCP server of the older protocol in plain Python, that misbehaves on demand; run as a program.

Usage: raw_mcp_server.py NOTES [BEHAVIOUR…]. It appends what it sees to the file NOTES, one JSON value a
line. Behaviours: `hang` (answers nothing), `hang-once` (the first process only), `flood` (fills stderr),
`stubborn` (ignores the end of stdin and SIGTERM), `family` (has a grandchild in another session), `noise`
(prints on stdout), `forgetful` (the first process ends at its first call), `hostile` (its schemas are traps), `patterns` (so are
its regular expressions), `dated` (two harmless ones, the second wrong), `nosy` (asks without end in `wait`), `many`
(600 tools more), `strange` (130 more, most described as no provider takes it).
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ANY: dict[str, Any] = {"type": "object", "properties": {}}


def tool(name: str, schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema or ANY, **more}


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAAAAACRlXs8AAAAE0lEQVR4nGNgYGD4z8DAwMDAAAAGAgEA5OqU0gAAAABJRU5ErkJggg=="
)
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    tool("zulu"),
    tool("echo", TEXT),
    tool("peek", annotations={"readOnlyHint": True}),
    tool("put", TEXT, annotations={"idempotentHint": True}),
    tool("die"),
    tool("wait"),
    tool("ask", {"type": "object", "properties": {"schema": {"type": "object"}}}),
    tool("think"),
    tool("grow"),
    tool("environment"),
    tool("huge"),
    tool("touch", TEXT),
    tool("where"),
    tool("odd", {"type": "object", "properties": {"a b": {"type": "string"}}}),
    tool("far", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:1/schema.json"}}}),
]

NODE = {"$ref": "#/$defs/node"}
TWICE = {"node": {"allOf": [{"properties": {"c": NODE}}, {"properties": {"c": NODE}}]}}
DOUBLING = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": {}}


def nested(depth: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": nested(depth - 1)}} if depth else {}


HOSTILE = [
    tool("doubling", {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": DOUBLING}),
    tool("twice", {"type": "object", "properties": {"x": NODE}, "$defs": TWICE}),
    tool("nested", nested(400)),
    tool("promise", outputSchema={"type": "object", "properties": {"t": {"pattern": "^(a+)+$"}}}),
    {
        "name": "loud",
        "description": "Does\x1b]0;owned\x07 it.",
        "inputSchema": {
            "type": "object",
            "properties": {"x": {"type": "string", "description": "The\x1b[31m x."}},
        },
    },
]

PATTERNS = [
    tool(
        f"pattern{i}",
        {
            "type": "object",
            "properties": {
                f"p{j}": {"type": "string", "pattern": f"(?:a{{1,1000}}){{1,{50 + j}}}$"} for j in range(50)
            },
        },
    )
    for i in range(20)
]
DATED = [
    tool("dated", {"type": "object", "properties": {"day": {"type": "string", "pattern": r"^\d{4}-\d\d$"}}}),
    tool("misdated", {"type": "object", "properties": {"day": {"type": "string", "pattern": "(("}}}),
]

DEEP: dict[str, Any] = {
    f"D{i}": {"type": "object", "properties": {"next": {"$ref": f"#/$defs/D{i + 1}"}}} for i in range(12)
}
DEEP["D12"] = {"type": "array", "description": "of anything"}
STRANGE = [
    tool("files.read"),
    tool("größe/名前"),
    tool("x" * 90),
    tool("bare", {}),
    tool("list", {"type": "object", "properties": {"rows": {"type": "array"}, "pair": {
        "type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}}}),
    tool("either", {"type": "object", "anyOf": [{"properties": {"a": {"type": ["array", "null"]}}, "required": ["a"]},
        {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
    tool("deep", {"type": "object", "properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": DEEP}),
    tool("above", {"type": "object", "$ref": "#/$defs/Top", "$defs": {"Top": {"type": "object", "properties": {"q": {"type": "string"}}}}}),
    tool("chosen", {"type": "object", "properties": {"n": {"enum": [1, 2, "three", None]}, "m": {"const": 4},
        "d": {"type": "string", "format": "date", "default": "2026-01-01"}}, "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#"}),
    tool("show"),
    tool("fail"),
    *(tool(f"more{n}", TEXT) for n in range(119)),
]  # fmt: skip
MORE = {
    "broken": [
        {"name": "loose", "inputSchema": {"properties": {}}},
        {"inputSchema": {"type": "object"}},
        "no tool",
        {"name": "odd", "inputSchema": {"type": "object"}, "description": 5},
        {"name": "bare"},
        tool("whole"),
    ],
    "strange": STRANGE,
    "hostile": HOSTILE,
    "patterns": PATTERNS,
    "dated": DATED,
    "many": [tool(f"n{n}") for n in range(600)],
}


class Raw:
    def __init__(self, notes: Path, behaviours: list[str]) -> None:
        self.notes, self.behaviours = notes, set(behaviours)
        self.first = not notes.exists() or not notes.read_text()
        self.tools = [*TOOLS, *(each for name in behaviours for each in MORE.get(name, ()))]
        self.waiting: dict[Any, Any] = {}
        self.asked = 0
        self.lock = threading.Lock()

    def note(self, **what: Any) -> None:
        with self.lock, self.notes.open("a") as file:
            file.write(json.dumps({**what, "pid": os.getpid()}) + "\n")

    def send(self, **message: Any) -> None:
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def text(self, call: Any, text: str, **more: Any) -> None:
        self.send(id=call, result={"content": [{"type": "text", "text": text}], **more})

    def prepare(self) -> None:
        self.note(started=sys.argv[1:], cwd=str(Path.cwd()))
        if "stubborn" in self.behaviours:
            signal.signal(signal.SIGTERM, lambda *_: self.note(ignored="SIGTERM"))
        if "family" in self.behaviours:
            script = "import os,sys,time\nif os.fork(): os._exit(0)\nos.setsid()\nprint(os.getpid(),flush=True)\ntime.sleep(600)"
            child = subprocess.Popen(
                [sys.executable, "-c", script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
            )
            assert child.stdout is not None
            self.note(grandchild=int(child.stdout.readline()))
        if "flood" in self.behaviours:
            threading.Thread(target=self.flood, daemon=True).start()
        if "noise" in self.behaviours:
            print("Welcome to the noisy server!", flush=True)
        sys.stderr.write("raw server is up\n")
        sys.stderr.flush()
        if "hang" in self.behaviours or ("hang-once" in self.behaviours and self.first):
            while True:
                time.sleep(60)

    def flood(self) -> None:
        while True:
            sys.stderr.write("x" * 65_536 + "\n")

    def run(self) -> None:
        self.prepare()
        for line in sys.stdin:
            self.handle(json.loads(line))
        self.note(ended="stdin")
        while "stubborn" in self.behaviours:
            time.sleep(60)

    def handle(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self.waiting.pop(message["id"])(message)
            return
        method, number, params = message["method"], message.get("id"), message.get("params") or {}
        if method == "initialize":
            info = {"name": "raw", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            version = params["protocolVersion"]
            self.note(capabilities=params["capabilities"])
            self.send(
                id=number,
                result={"protocolVersion": version, "capabilities": capabilities, "serverInfo": info},
            )
        elif method == "tools/list":
            self.send(id=number, result={"tools": self.tools})
        elif method == "tools/call":
            self.note(called=params["name"], arguments=params.get("arguments"))
            done = self.show if params["name"] in ("show", "fail") else self.call
            done(number, params["name"], params.get("arguments") or {})
        elif method.startswith("notifications/"):
            self.note(heard=method, params=params)
        else:
            self.send(id=number, error={"code": -32601, "message": "Method not found"})

    def show(self, number: Any, name: str, _arguments: dict[str, Any]) -> None:
        shown = [{"type": "text", "text": name}, {"type": "image", "data": PNG, "mimeType": "image/png"}]
        self.send(id=number, result={"content": shown, "isError": name == "fail"})

    def call(self, number: Any, name: str, arguments: dict[str, Any]) -> None:
        if "forgetful" in self.behaviours and self.first:
            os._exit(3)
        match name:
            case "die":
                os._exit(3)
            case "wait":
                while "nosy" in self.behaviours:
                    self.request(number, "roots/list", {})
                return
            case "echo" | "put":
                self.text(number, arguments["text"])
            case "environment":
                self.text(number, json.dumps(dict(os.environ)))
            case "promise":
                self.text(number, "kept", structuredContent={"t": "a" * 50 + "!"})
            case "huge":
                self.text(number, "line of text\n" * 10_000)
            case "grow":
                self.tools.append(tool("grown"))
                self.send(method="notifications/tools/list_changed")
                self.text(number, "grown")
            case "ask":
                asked = {"message": "Which colour?", "requestedSchema": arguments.get("schema") or ANY}
                self.request(number, "elicitation/create", asked)
            case "touch":
                Path(arguments["text"]).write_text("made by the server")
                self.text(number, "made")
            case "where":
                self.request(number, "roots/list", {})
            case "think":
                said = [{"role": "user", "content": {"type": "text", "text": "Say hi."}}]
                self.request(number, "sampling/createMessage", {"messages": said, "maxTokens": 50})
            case _:
                self.text(number, name)

    def request(self, call: Any, method: str, params: dict[str, Any]) -> None:
        self.asked += 1
        self.waiting[f"r{self.asked}"] = lambda answer: self.text(
            call, json.dumps(answer.get("result", answer.get("error")))
        )
        self.send(id=f"r{self.asked}", method=method, params=params)


if __name__ == "__main__":
    Raw(Path(sys.argv[1]), sys.argv[2:]).run()
