"""Processes that speak lines of JSON: real ones, that answer, fail, hang, and leave children."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import pytest

from benchmarks.peers.environments import HERE
from benchmarks.peers.processes import JsonProcess, PeerFailedError, json_process

ECHO = "import sys\nfor line in sys.stdin:\n    print(line, end='', flush=True)\n"
PARENT = (
    "import subprocess, sys, json\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(json.dumps({'child': child.pid}), flush=True)\n"
    "sys.stdin.read()\n"
)
CALLER = """
from benchmarks.peers.caller import CannotAnswerError, serve_calls

class Caller:
    def connect(self, service):
        print("a library greets")
        self.base = service["base"]
    def bound(self, statement, values):
        return values[0]
    def call(self, statement):
        if statement.writes:
            raise CannotAnswerError("nothing is written here")
        return lambda value: [[self.base + value, 100 // value]]
    def close(self):
        pass

serve_calls(Caller())
"""

Run = Callable[[str], AbstractContextManager[JsonProcess]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return lambda source: json_process([sys.executable, "-c", source], tmp_path / "log", folder=HERE)


def test_a_process_answers_and_ends_with_its_stdin(run: Run) -> None:
    with run(ECHO) as process:
        assert process.ask({"n": [1, None]}, 60) == {"n": [1, None]}
        root = process.tree()[0]
    assert not root.is_running()


def test_what_a_process_has_started_ends_with_it_also_after_a_failure(run: Run) -> None:
    children = []

    def fail() -> None:
        with run(PARENT) as process:
            children.append(psutil.Process(process.receive(60)["child"]))
            assert children[0].is_running()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not children[0].is_running() or children[0].status() == psutil.STATUS_ZOMBIE


def test_a_process_that_ends_says_its_last_line(run: Run) -> None:
    with run("raise SystemExit('no such cluster')") as process, pytest.raises(PeerFailedError, match="no such cluster"):
        process.receive(60)


def test_a_process_that_does_not_answer_is_killed(run: Run) -> None:
    with run("import time; time.sleep(600)") as process:
        began_s = time.monotonic()
        with pytest.raises(PeerFailedError, match=r"no answer in 0\.5 s"):
            process.receive(0.5)
        assert time.monotonic() - began_s < 20


def test_a_caller_answers_what_it_can(run: Run) -> None:
    with run(CALLER) as process:
        assert process.ask({"do": "connect", "base": 7}, 60) == {}
        asked = {"do": "answer", "statement": "rows of a customer", "values": [[1], [50]]}
        assert process.ask(asked, 60) == {"rows": [[[8, 100]], [[57, 2]]]}
        assert process.ask({**asked, "statement": "upsert by INSERT OR REPLACE"}, 60) == {
            "cannot": "nothing is written here"
        }
        with pytest.raises(PeerFailedError, match="ZeroDivisionError"):
            process.ask({**asked, "values": [[0]]}, 60)
        with pytest.raises(PeerFailedError, match="there is no statement 'nothing'"):
            process.ask({**asked, "statement": "nothing"}, 60)


@pytest.mark.parametrize(
    ("loop", "calls_min"),
    [
        pytest.param({"do": "closed"}, 1, id="closed"),  # as many as the processor has time for
        pytest.param({"do": "open", "rate_per_s": 200, "seed": 1}, 40, id="open"),  # those that are due
    ],
)
def test_a_caller_times_calls(run: Run, loop: dict[str, object], calls_min: int) -> None:
    with run(CALLER) as process:
        process.ask({"do": "connect", "base": 7}, 60)
        begin_s = time.time() + 0.1
        timed = process.ask(
            {**loop, "statement": "rows of a customer", "values": [[1], [2]], "begin_s": begin_s, "seconds": 0.3}, 30
        )
        assert time.time() >= begin_s + 0.2
        assert len(timed["latencies_us"]) >= calls_min
        assert 0 <= min(timed["latencies_us"]) < max(timed["latencies_us"])  # a clock may stand still for a fast call
        assert 0.2 < timed["elapsed_s"] < 20
        assert timed["processor_s"] >= 0
