"""Threads that read their first message at once. In a process of its own: where they may not, the process ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import msgspec
import pytest

from secateur.protocol import decode, encode, from_json

THREADS = 4
VALUE = [1, [[2, [[3, {"a": None}]]]]]


def new_structs() -> type:
    """Structs that nobody has decoded, each of which is in a field of the one before; returns the first."""
    names = [f"Part{number}" for number in range(8)]
    for name, inner in zip(names, [*names[1:], "int"], strict=True):
        fields = [("value", int), ("rest", f"list[{inner}] | dict[str, {inner} | None] | None")]
        globals()[name] = msgspec.defstruct(name, fields, array_like=True, module=__name__)
    first: type = globals()[names[0]]
    return first


def read(form: str, kind: type) -> None:
    found = decode(encode(VALUE), kind) if form == "msgpack" else from_json(msgspec.json.encode(VALUE), kind)
    assert msgspec.to_builtins(found) == VALUE, found


def read_at_once(form: str) -> None:
    kind, barrier, errors = new_structs(), threading.Barrier(THREADS + 1), []

    def read_first() -> None:
        barrier.wait()
        try:
            read(form, kind)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read_first) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    barrier.wait()
    child = os.fork()
    if not child:  # of the threads of its parent it has none, and none of their locks may be held for ever
        read(form, kind)
        os._exit(0)
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("form", ["msgpack", "json"])
def test_threads_and_forks_may_read_their_first_message_at_once(form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", __file__, form],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    for _ in range(40):
        read_at_once(sys.argv[1])
