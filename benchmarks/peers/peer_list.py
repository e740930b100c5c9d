"""The peers: where their libraries come from, what holds their members, and their clients."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.peers.environments import HERE, Jars, Venv, java_argv

__all__ = ["CONTROLS", "PEERS", "Client", "Peer"]

_ADAPTERS: Final = "benchmarks.peers.adapters"
_HAZELCAST: Final = Jars(
    "hazelcast",
    ("com.hazelcast:hazelcast:5.7.0", "com.hazelcast:hazelcast-sql:5.7.0"),
    ("HazelcastMember.java", "HazelcastCaller.java"),
)
_IGNITE: Final = Jars(
    "ignite",
    ("org.apache.ignite:ignite-core:2.17.0", "org.apache.ignite:ignite-indexing:2.17.0"),
    ("IgniteMember.java", "IgniteCaller.java"),
)


@dataclass(frozen=True, slots=True)
class Client:
    """A client of a peer: a column of the report.

    Attributes:
        name: The peer and how it is called.
        adapter: The file in ``adapters``, without its suffix; for Java, the class.
        arguments: Given to it after ``call``.
        venv: The Python environment of its own; without one, the project's.
        jars: For a client in Java; its clients are then threads of one process.
        alone: Only one client at a time makes sense: the peer's data is in the client's process, or it is a job system
            whose driver the client is.
    """

    name: str
    adapter: str
    arguments: tuple[str, ...] = ()
    venv: Venv | None = None
    jars: Jars | None = None
    alone: bool = False

    def argv(self, below: Path) -> list[str]:
        """The command that runs it; its environment is made if it is not there.

        Raises:
            NotAvailableError: Its libraries cannot be installed.
        """
        if self.jars is not None:
            return java_argv(self.jars.classpath(below), "512m", self.adapter, *self.arguments)
        return [*_python(self.adapter, self.venv, below), "call", *self.arguments]


@dataclass(frozen=True, slots=True)
class Peer:
    """A system, or a control.

    Attributes:
        name: As ``--peers`` has it.
        clients: At least one.
        service: The adapter that holds its members; without one it lives in its clients.
        venv: The Python environment of the service.
        jars: What its members need.
    """

    name: str
    clients: tuple[Client, ...]
    service: str | None = None
    venv: Venv | None = None
    jars: Jars | None = None

    def service_argv(self, below: Path) -> list[str]:
        """The command that runs its members.

        Raises:
            NotAvailableError: Its libraries cannot be installed.
        """
        assert self.service is not None
        return [*_python(self.service, self.venv, below), "serve"]


def _python(adapter: str, venv: Venv | None, below: Path) -> list[str]:
    python = Path(sys.executable) if venv is None else venv.python(below)
    return [str(python), str(HERE / "benchmarks" / "peers" / "adapters" / f"{adapter}.py")]


_HAZELCAST_PYTHON: Final = Venv("hazelcast-python", ("hazelcast-python-client==5.7.0",))
_IGNITE_PYTHON: Final = Venv("ignite-python", ("pyignite==0.6.1",))
_DAFT: Final = Venv("daft", ("daft[ray]==0.7.26", "pyarrow"))
# It imports a module that newer versions of DuckDB do not have.
_SMALLPOND: Final = Venv("smallpond", ("smallpond==0.15.0", "duckdb==1.2.2"))

CONTROLS: Final = (
    Peer("echo", (Client("echo", "echo_control"),), service="echo_control"),
    Peer("ray-call", (Client("empty Ray call", "ray_call_control", alone=True),)),
)

_LISTED: Final = (
    Peer(
        "secateur",
        (
            Client("secateur, Python", "secateur_peer"),
            Client("secateur, pruning off", "secateur_peer", ("pruning=off",)),
        ),
        service="secateur_peer",
    ),
    Peer(
        "hazelcast",
        (
            Client("Hazelcast, Python", "hazelcast_peer", venv=_HAZELCAST_PYTHON),
            Client("Hazelcast, Java", "HazelcastCaller", jars=_HAZELCAST),
        ),
        service="hazelcast_peer",
        jars=_HAZELCAST,
    ),
    Peer(
        "ignite",
        (
            Client("Ignite, Python", "ignite_peer", venv=_IGNITE_PYTHON),
            Client("Ignite, JDBC", "IgniteCaller", jars=_IGNITE),
        ),
        service="ignite_peer",
        jars=_IGNITE,
    ),
    Peer("duckdb", (Client("DuckDB, in process", "duckdb_peer", alone=True),)),
    Peer("polars", (Client("Polars, in process", "polars_peer", alone=True),)),
    Peer("daft", (Client("Daft on Ray", "daft_peer", venv=_DAFT, alone=True),)),
    Peer("ray-data", (Client("Ray Data", "ray_data_peer", alone=True),)),
    Peer("spark", (Client("Spark, cached", "spark_peer", alone=True),)),
    Peer("smallpond", (Client("smallpond", "smallpond_peer", venv=_SMALLPOND, alone=True),)),
)

PEERS: Final[Mapping[str, Peer]] = {peer.name: peer for peer in _LISTED}
