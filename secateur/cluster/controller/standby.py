"""Has a controller serve at the address of the cluster as soon as nobody else does.

A standby is a second process of the controller, which waits for the first one to end. On one machine the operating
system lets one process listen at an address, and takes it back when that has ended, however it has. So whoever listens
is the controller: there is no vote and no heartbeat, and two cannot serve at a time. One that is suspended keeps the
address, and nobody takes over.

A standby saves the time that a new process needs: on a busy machine Ray takes 2 to 7 seconds to start a worker, which
takes as long again to import the planner. It follows no state, which would have to be as right as the members' record.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from types import MappingProxyType
from typing import Final

from secateur.cluster.controller.catalog import Catalog
from secateur.cluster.controller.controller import Controller
from secateur.cluster.controller.statement_replies import PlanningView, StatementReplies
from secateur.cluster.loop_thread import BackgroundTasks
from secateur.errors import OperationalError
from secateur.partitioning.schemes.components import HashComponent
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.column_type import SqlType, TypeKind

_log = logging.getLogger(__name__)

_LOOK_S: Final = 0.05
"""Between two looks at the address. One takes some 10 microseconds."""


async def serve_when_free(controller: Controller, host: str, port: int) -> None:
    """Start a controller that recovers, once no other process listens at its address; until then it waits.

    Args:
        controller: It is to listen there, and has not been started.
        host: The address of the interface.
        port: The port.
    """
    preparing = BackgroundTasks()
    if not is_free(host, port):
        preparing.start(asyncio.to_thread(warm_up), "the first plan of a controller that waits")
    while True:
        if is_free(host, port):
            try:
                await controller.start()
            except OperationalError as error:  # another process was faster
                _log.info("%s", error)
            else:
                return
        await asyncio.sleep(_LOOK_S)


def is_free(host: str, port: int) -> bool:
    """Whether a process could listen at an address of this machine now. Costs two system calls; nobody notices it."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        # As a server does: connections of a process that has ended linger for a while, and are no reason to wait.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError:  # in use, as a rule; or the interface is down
            return False
    return True


def warm_up() -> None:
    """Plan a statement that nobody has asked for: the first one of a client need not wait for what is made once.

    That is half a second of processor time: DuckDB is imported, and parsers and types are set up.
    """
    bigint = SqlType(TypeKind.BIGINT)
    scheme = PartitionScheme(hashes=(HashComponent(("k",), 1),), types=(("k", bigint),))
    table = TableDef("t", 1, (Column("k", bigint, nullable=False), Column("v", bigint)), ("k",), scheme)
    view = PlanningView(Catalog(by_name=MappingProxyType({"t": table})), Topology(0, (), {}))
    StatementReplies(1).prepare("SELECT max(v) + 1 FROM t WHERE k < ?", [1], {}, view)
