"""A script that runs a private Ray for the process that started it, until that has ended or closes standard input."""

from __future__ import annotations

import _thread
import json
import os
import select
import shutil
import sys
import tempfile
import threading
from contextlib import suppress
from typing import Final

_NICENESS: Final = "RAY_worker_niceness"
"""Ray's variable. Its own default of 15 lets every other process of the machine go before the members, and clients
then wait for them behind each other.
"""
_DIRECTORY_CHARS_MAX: Final = 20


def main() -> None:
    """Start Ray, tell its address in a line, and end it when the time comes, also while it starts."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray prints is no answer
    started, ended = threading.Event(), threading.Event()
    threading.Thread(target=_watch, args=(os.getppid(), started, ended), daemon=True).start()
    import ray

    # A directory for its files alone, so that several on one machine do not collide. The paths of Ray's sockets have to
    # fit into the 107 bytes that the operating system has for them.
    wanted = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    directory = tempfile.mkdtemp(prefix="scr-", dir=wanted if len(wanted) <= _DIRECTORY_CHARS_MAX else "/tmp")
    try:
        reply = {}
        try:
            ray.init(
                address="local",
                include_dashboard=False,
                log_to_driver=False,
                logging_level="error",
                _temp_dir=directory,
                _system_config={"worker_niceness": int(os.environ.get(_NICENESS, "0"))},
            )
            reply["address"] = ray.get_runtime_context().gcs_address
            reply["authentication"] = os.environ.get("RAY_AUTH_MODE")
        except Exception as error:
            reply["failure"] = str(error)
        started.set()
        print(json.dumps(reply), file=answers, flush=True)
        ended.wait()
    finally:
        ray.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


def _watch(parent: int, started: threading.Event, ended: threading.Event) -> None:
    """Wait for the end of standard input, or of the parent: a process that it has forked may keep the pipe open."""
    while os.getppid() == parent and not select.select([0], [], [], 1.0)[0]:
        pass
    ended.set()
    if not started.is_set():
        _thread.interrupt_main()


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])
    with suppress(KeyboardInterrupt):
        main()
