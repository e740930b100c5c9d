"""Asks the user's process, from the processes that Spark starts beside it, which cluster is meant.

Spark plans with a data source in processes of its own. They get its options, and the environment in which Spark was
started: neither the settings of the session, nor variables that were set later, nor the secrets of clusters that the
user's process has started. So a thread of that process answers them, at a socket which only its user can reach. A
question bears the directory of the files of the Spark application: its name is random, and nobody else's.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 5.0


def settings_of_driver(address: str | None) -> dict[str, str]:
    """Asks the user's process for what it knows of a cluster, as options of a data source; none if nobody answers.

    Args:
        address: The cluster; None for the one that the user's process is set to use.
    """
    files, directory = directory_of_files(), directory_of_sockets()
    if files is None or directory is None:
        return {}
    question = json.dumps({"files": files, "address": address}).encode()
    for path in directory.iterdir():
        try:
            with socket.socket(socket.AF_UNIX) as channel:
                channel.settimeout(PATIENCE_S)
                channel.connect(str(path))
                channel.sendall(question)
                channel.shutdown(socket.SHUT_WR)
                answer = json.loads(received(channel))
        except (OSError, ValueError):  # its process was killed, or is about to end
            continue
        if answer is not None:
            return dict(answer)
    return {}


def directory_of_files() -> str | None:
    """The directory of the files of this process's Spark application, or of that for which this process works."""
    from pyspark import SparkFiles

    try:
        return SparkFiles.getRootDirectory()
    except (AssertionError, AttributeError):  # there is none
        return None


def directory_of_sockets() -> Path | None:
    """The directory of the sockets of this user's processes; None if it is not safe from others."""
    directory = Path(tempfile.gettempdir(), f"secateur-{os.getuid()}")
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
    except OSError:
        return None
    is_safe = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return directory if is_safe else None


def received(channel: socket.socket) -> bytes:
    """All that the other side sends."""
    with channel.makefile("rb") as stream:
        return stream.read()
