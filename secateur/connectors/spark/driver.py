"""Answers the processes of Spark which cluster is meant, in a thread of the user's process; see ``endpoint.py``."""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from secateur.connectors.spark.endpoint import PATIENCE_S, directory_of_files, directory_of_sockets, received
from secateur.forks import forks_wait_for

_lock: Final = forks_wait_for(threading.Lock())
_answering: Final[set[int]] = set()
"""The process that answers: a fork has no thread that does."""


def answer_spark() -> None:
    """Answer the processes of this process's Spark, also of one that is started later.

    Does nothing where PySpark is not installed, or where the directory of temporary files has no place for a socket
    that only its user can reach.
    """
    with _lock:
        directory = directory_of_sockets()
        if os.getpid() in _answering or directory is None or find_spec("pyspark") is None:
            return
        path = directory / str(os.getpid())
        listener = socket.socket(socket.AF_UNIX)
        try:
            path.unlink(missing_ok=True)  # of an earlier process with this number
            listener.bind(str(path))
        except OSError:  # the path is too long, or the disk is full
            listener.close()
            return
        listener.listen()
        atexit.register(_remove, path)
        threading.Thread(target=_answer_all, args=(listener,), name="secateur-spark-driver", daemon=True).start()
        _answering.add(os.getpid())


def _remove(path: Path) -> None:
    if path.name == str(os.getpid()):  # not that of the process which this one was forked from
        path.unlink(missing_ok=True)


def _answer_all(listener: socket.socket) -> None:
    while True:
        channel, _ = listener.accept()
        with channel, suppress(Exception):  # of Spark while it stops; whoever asks does without
            channel.settimeout(PATIENCE_S)
            question = json.loads(received(channel))
            channel.sendall(json.dumps(_answer(question["files"], question["address"])).encode())


def _answer(files: str, address: str | None) -> Mapping[str, str] | None:
    """The options of a cluster; None for a Spark application of another process.

    A process that asks does not know its session. If several could be meant, one whose settings differ from those of
    the others is no answer: rows must not go to the cluster of another session. A secret may be tried at the address
    that was given.
    """
    if "pyspark.sql" not in sys.modules or directory_of_files() != files:
        return None
    from secateur.connectors.spark.endpoint import Endpoint
    from secateur.errors import InterfaceError

    known: set[Endpoint | None] = set()
    for spark in _sessions():
        try:
            known.add(Endpoint.of(spark, address, None))
        except InterfaceError:  # the one who asks has a better place to say it
            known.add(None)
    if address is not None and len(known) > 1:
        known = {endpoint for endpoint in known if endpoint is not None and endpoint.token is not None}
    only = known.pop() if len(known) == 1 else None
    return {} if only is None else only.options()


def _sessions() -> list[Any]:
    from pyspark.sql import SparkSession

    found = [SparkSession.active(), *(each for each in gc.get_objects() if type(each) is SparkSession)]
    return [spark for spark in found if spark.sparkContext._jsc is not None]  # those that were stopped are still found
