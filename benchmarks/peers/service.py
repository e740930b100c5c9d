"""What the process that holds a peer's members does: start, load, say so, and stop when its stdin ends.

It prints one line of JSON when statements can be made: what clients need to connect. The harness ends it by closing its
stdin, which happens as well if the harness dies.

This file needs nothing but Python, because every peer's environment reads it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.peers.caller import private_stdout

__all__ = ["serve"]


def serve(started: Callable[[dict[str, Any]], AbstractContextManager[Mapping[str, Any]]]) -> None:
    """Read the setting from the first line of stdin, start, and keep the members until stdin ends.

    Args:
        started: From the setting to a context that starts and loads, gives what clients need, and stops.
    """
    reply = private_stdout()
    setting = json.loads(sys.stdin.readline())
    began_s = time.monotonic()
    with started(setting) as described:
        reply.write(json.dumps({**described, "ready_s": time.monotonic() - began_s}) + "\n")
        reply.flush()
        sys.stdin.read()
