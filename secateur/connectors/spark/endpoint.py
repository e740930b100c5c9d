"""The address and token of the cluster, and how the processes of Spark learn which cluster is meant.

They come from arguments, the Spark session or the environment. A process that has none of these asks the user's
process, in which a thread answers.

A task knows its endpoint, and most ask members alone or nobody: so this file loads the client and the wire when an
endpoint is looked for or connects.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from secateur.errors import InterfaceError
from secateur.forks import forks_wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secateur.client.session import Session
    from secateur.wire.tls import Tls

_ADDRESS_CONF: Final = "spark.secateur.address"
_TOKEN_CONF: Final = "spark.secateur.token"
_TLS_CA_CONF: Final = "spark.secateur.tlsCa"
_TIMEOUT_S: Final = 30.0

_lock: Final = forks_wait_for(threading.Lock())
_answering: Final[set[int]] = set()
"""The process that answers: a fork has no thread that does."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A cluster, reached through its controller. Travels to Spark's processes, which connect for themselves.

    Attributes:
        address: ``secateur://host:port``.
        token: The secret of the cluster, if it has one.
        tls: How connections are encrypted; None for a cluster without TLS.
    """

    address: str
    token: str | None = field(default=None, repr=False)
    tls: Tls | None = None

    @classmethod
    def of(cls, spark: SparkSession, address: str | None, token: str | None) -> Endpoint:
        """Return the endpoint that the arguments name, or else the one set in the Spark session or the environment.

        Raises:
            InterfaceError: No address is given anywhere, or the given one is invalid.
        """
        from secateur.client.connect import ADDRESS_VARIABLE, parse_address, tls_for, token_for

        found = address or spark.conf.get(_ADDRESS_CONF, None) or os.environ.get(ADDRESS_VARIABLE)
        if not found:
            raise InterfaceError(
                "the address of the cluster is missing: pass address=cluster.address, or set"
                f" {_ADDRESS_CONF} in the Spark session or {ADDRESS_VARIABLE} in the environment"
            )
        place = parse_address(found)
        return cls(found, token_for(*place, token or spark.conf.get(_TOKEN_CONF, None)), tls_for(*place, _tls(spark)))

    @classmethod
    def of_options(cls, options: Mapping[str, str]) -> Endpoint:
        """Return the endpoint of the options of a data source, or what the user's process or the environment says.

        Data sources run in processes of Spark, whose environment is that in which Spark was started.

        Args:
            options: By their names in small letters, as ``given_options`` has them.

        Raises:
            InterfaceError: No address is given, or it is invalid.
        """
        from secateur.client.connect import ADDRESS_VARIABLE, TOKEN_VARIABLE, parse_address, tls_for
        from secateur.wire.tls import Tls

        if "address" not in options or "token" not in options:
            known = settings_of_driver(options.get("address"))
            options = {**{name.casefold(): value for name, value in known.items()}, **options}
        found = options.get("address") or os.environ.get(ADDRESS_VARIABLE)
        if not found:
            raise InterfaceError(
                'the address of the cluster is missing: .option("address", cluster.address), or set'
                f" {_ADDRESS_CONF} in the Spark session or {ADDRESS_VARIABLE} in the environment"
            )
        authorities, name = options.get("tlsca"), options.get("tlsservername")
        tls = tls_for(*parse_address(found), Tls(ca=authorities, server_name=name) if authorities or name else None)
        token = options.get("token", os.environ.get(TOKEN_VARIABLE))
        return cls(found, token or None, tls)

    def options(self) -> dict[str, str]:
        """Return the options of a data source that name this endpoint, and say so if it has no token."""
        named = {"address": self.address, "token": self.token or ""}
        if self.tls is not None:
            named |= {
                "tlsCa": "" if self.tls.ca is None else str(self.tls.ca),
                "tlsServerName": self.tls.server_name or "",
            }
        return {name: value for name, value in named.items() if value or name == "token"}

    @contextmanager
    def session(self, *, timeout_s: float | None = _TIMEOUT_S) -> Iterator[Session]:
        """A connection for as long as the block runs.

        An answer may take ``timeout_s`` seconds; None: as long as the cluster works on it.

        Raises:
            UnreachableError: The cluster cannot be reached at the address.
            AuthenticationError: The token is missing or wrong.
        """
        session = self.connected(timeout_s=timeout_s)
        try:
            yield session
        finally:
            session.close()

    def connected(self, *, timeout_s: float | None) -> Session:
        """A connection that the caller closes; see :meth:`session`."""
        from secateur.client.connect import parse_address
        from secateur.client.execution.retry_policy import CONNECT_TIMEOUT_S, REFUSED_S
        from secateur.client.session import Session

        host, port = parse_address(self.address)
        found = _file_of_found(host, port)
        refused_s = None if found is None or found.exists() else REFUSED_S
        session = Session(
            *(host, port),
            token=self.token,
            timeout_s=timeout_s,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            refused_s=refused_s,
            tls=self.tls,
        )
        if found is not None:
            with suppress(OSError):  # Spark is stopping, or the disk is full: the next one waits less
                found.touch()
        return session


def _file_of_found(host: str, port: int) -> Path | None:
    """The file that is there once this Spark application has found a cluster at an address; None in its tasks.

    An address that refuses connections is most often a wrong one, unless a cluster was found there, which may be
    starting anew. Spark plans in many processes; its tasks begin after one of them has found the cluster.
    """
    from pyspark import TaskContext  # not there where members run without Spark, which answer its questions as well

    directory = directory_of_files() if TaskContext.get() is None else None
    return None if directory is None else Path(directory, f"secateur-found-{host}-{port}")


def _tls(spark: SparkSession) -> Tls | None:
    from secateur.wire.tls import Tls

    authorities = spark.conf.get(_TLS_CA_CONF, None)
    return Tls(ca=authorities) if authorities else None


PATIENCE_S: Final = 5.0


def settings_of_driver(address: str | None) -> dict[str, str]:
    """Asks the user's process for what it knows of a cluster, as options of a data source; none if nobody answers.

    Spark plans with a data source in processes of its own. They get its options, and the environment in which Spark was
    started: neither the settings of the session, nor variables that were set later, nor the secrets of clusters that
    the user's process has started. So a thread of that process answers them, at a socket which only its user can reach.
    A question bears the directory of the files of the Spark application: its name is random, and nobody else's.

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
    that was given. Streams, and sessions with artifacts of their own, have a directory below that of the application.
    """
    own = directory_of_files() if "pyspark.sql" in sys.modules else None
    if own is None or not Path(files).is_relative_to(own):
        return None
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
