"""A Ray that belongs to this process, started by a process of its own.

Ray runs Python between the fork and the exec of each process that it starts, and Python then destroys, in the child,
what all other threads of the parent keep in thread-local variables. A connection among them that closes itself says
goodbye for both: those of Py4J do, so a Spark session lost the thread of its driver, and so do those of many databases.
So the process that forks, ``ray_starter.py``, is not the user's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from ray._raylet import Config

_AUTHENTICATION: Final = "RAY_AUTH_MODE"
_STARTER: Final = Path(__file__).with_name("ray_starter.py")
_END_S: Final = 20.0


class PrivateRay:
    """The process that starts Ray, and ends it when told to or when this process has ended."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", _STARTER, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is meant for this process alone
        )

    def address(self) -> str:
        """The address of Ray when it has come up, to which this process may connect then.

        Raises:
            RuntimeError: It did not come up.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that starts it ended with status {self._process.wait()}")
        reply = json.loads(line)
        if "failure" in reply:
            raise RuntimeError(reply["failure"])
        mode = reply["authentication"]
        if mode != os.environ.get(_AUTHENTICATION):
            # Ray switches its tokens on in a process that starts a Ray, and not in one that connects, which has read
            # the variable when it imported Ray.
            os.environ[_AUTHENTICATION] = mode
            Config.initialize("")
        return str(reply["address"])

    def stop(self) -> None:
        """End Ray, which may still be about to come up."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
