"""The clock of a running server jumps: an hour and ten years ahead, an hour back, right again.

Shows that after each jump, and over one in the middle of an answer, turns end as they should in one attempt, a repeated
message is one message, and a turn that a kill -9 left behind with a lease of ten years ahead goes on at once.

    python benchmarks/clock_jumps.py

Needs a C compiler: a library before the C library's (LD_PRELOAD) adds a number of seconds, read from a shared
page, to the wall clock; the monotonic clock stays as it is. Exit code 0 only when nothing is wrong.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.fake_models import FakeModels
from support.servers import free_port

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long *ahead;
static int (*real)(clockid_t, struct timespec *);
__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_AHEAD");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) ahead = page;
}
int clock_gettime(clockid_t clock, struct timespec *t) {
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, t);
  if (ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) t->tv_sec += *ahead;
  return result;
}
time_t time(time_t *out) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (out) *out = t.tv_sec;
  return t.tv_sec;
}
int gettimeofday(struct timeval *restrict v, void *restrict zone) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  v->tv_sec = t.tv_sec;
  v->tv_usec = t.tv_nsec / 1000;
  return 0;
}
"""
HOUR, TEN_YEARS = 3600, 3652 * 86_400
SLOW = {"deltas": 30, "gap_s": 0.1}


class Jumping:
    """A server whose clock is set from outside."""

    def __init__(self, home: Path, model: FakeModels) -> None:
        self._home, self._offset = home, home / "ahead"
        (home / "project").mkdir()
        (home / "shim.c").write_text(SHIM)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O2", "-o", str(home / "shim.so"), str(home / "shim.c"), "-ldl"],
            check=True,
        )
        settings = {
            "agent": {"workspace": str(home / "project"), "data_dir": str(home / "data")},
            "provider": {
                "name": "anthropic",
                "base_url": model.anthropic_url,
                "api_key": "sk-ant-0123456789",
            },
            "memory": {"enabled": False},
        }
        (home / "config.yaml").write_text(json.dumps(settings))
        (home / "config.yaml").chmod(0o600)
        self._offset.write_bytes(struct.pack("l", 0))
        self.start()

    def start(self) -> None:
        port = free_port()
        command = [
            str(Path(sys.executable).with_name("bowerbird")),
            "--config",
            str(self._home / "config.yaml"),
        ]
        self.process = subprocess.Popen(
            [*command, "serve", "--port", str(port)],
            cwd=self._home,
            env={
                "HOME": str(self._home), "PATH": os.environ["PATH"],
                "CLOCK_AHEAD": str(self._offset), "LD_PRELOAD": str(self._home / "shim.so"),
            },
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.process.stdout.readline()  # where it serves: it is ready
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False)

    def jump(self, seconds: int) -> None:
        with self._offset.open("r+b") as file:
            file.write(struct.pack("l", seconds))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def say(self, session: str, step: dict[str, Any], wait: int = 100, key: str = "") -> dict[str, Any]:
        answer = self.http.post(
            f"/api/conversations/{session}/messages?wait={wait}"
            if wait
            else f"/api/conversations/{session}/messages",
            json={"content": f"go [[fake {json.dumps({'steps': [step]})}]]"},
            headers={"Idempotency-Key": key} if key else {},
        )
        answer.raise_for_status()
        return answer.json()

    def turn(self, session: str, turn_id: str) -> dict[str, Any]:
        return self.http.get(f"/api/conversations/{session}/turns/{turn_id}?wait=60").json()


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as directory, FakeModels() as model:
        server = Jumping(Path(directory), model)
        try:
            for name, ahead in (("+1 h", HOUR), ("+10 years", TEN_YEARS), ("-1 h", -HOUR), ("right", 0)):
                wrong += _jumped(server, name, ahead)
            wrong += _killed(server)
        finally:
            server.kill()
    return 1 if wrong else 0


def _jumped(server: Jumping, name: str, ahead: int) -> int:
    session = server.http.post("/api/chat", json={}).json()["conversation_id"]
    running = server.say(session, SLOW, wait=0)["turn_id"]
    server.jump(ahead)
    over = server.turn(session, running)
    said = [server.say(session, {"text": f"now {name}"}, key=f"k{ahead}")["turn_id"] for _ in range(2)]
    is_whole = over["state"] == "done" and len(over["text"].split()) == SLOW["deltas"]
    is_right = is_whole and over["attempt"] == 1 and len(set(said)) == 1
    print(
        f"{name}: over the jump {over['state']}, attempt {over['attempt']}; repeated: {len(set(said))} turn",
        flush=True,
    )
    return 0 if is_right else 1


def _killed(server: Jumping) -> int:
    server.jump(TEN_YEARS)
    session = server.http.post("/api/chat", json={}).json()["conversation_id"]
    running = server.say(session, SLOW, wait=0)["turn_id"]
    server.kill()
    server.jump(0)
    server.start()
    left = server.turn(session, running)
    print(f"killed ten years ahead, started again: {left['state']}, attempt {left['attempt']}")
    return 0 if left["state"] == "done" else 1


if __name__ == "__main__":
    sys.exit(main())
