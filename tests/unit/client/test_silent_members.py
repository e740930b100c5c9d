"""Members that accept connections and say nothing, as the process of a stopped one does: a statement follows to whoever
takes their place.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from msgspec import structs

import secateur
from secateur.client import Connection
from secateur.client.member_calls import Sign
from secateur.errors import DeadlineError, MemberLostError, UnreachableError
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import Execute
from secateur.wire import SILENCE_S


@contextmanager
def silent_address() -> Iterator[MemberAddress]:
    with closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as listening:
        yield MemberAddress("m1", "127.0.0.1", listening.getsockname()[1])


@contextmanager
def hanging_up_address() -> Iterator[MemberAddress]:
    """It accepts connections and closes them, as a process that is about to end does."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def hang_up() -> None:
            while True:
                try:
                    accepted, _ = listening.accept()
                except OSError:
                    return
                accepted.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            yield MemberAddress("m1", "127.0.0.1", listening.getsockname()[1])
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(20)


@contextmanager
def closed_address() -> Iterator[MemberAddress]:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen: nobody else gets the port
        yield MemberAddress("m1", "127.0.0.1", bound.getsockname()[1])


def at(topology: Topology, address: MemberAddress) -> Topology:
    """The topology with another address for a member."""
    return structs.replace(
        topology, members=tuple(address if member.id == address.id else member for member in topology.members)
    )


@pytest.mark.parametrize(
    ("address", "sign"),
    [
        pytest.param(silent_address, Sign.SILENT, id="silent"),
        pytest.param(hanging_up_address, Sign.GONE, id="about to end"),
        pytest.param(closed_address, Sign.GONE, id="ended"),
    ],
)
def test_a_member_that_is_silent_is_told_from_one_that_has_ended(cluster: Any, address: Any, sign: Sign) -> None:
    with address() as there:
        cluster.topology = at(cluster.topology, there)
        with secateur.connect(cluster.address) as conn:
            started_s = time.monotonic()
            assert conn._session.sign_of("m1") is sign
            assert time.monotonic() - started_s < 4
            assert conn._session.sign_of("m2") is Sign.ANSWERS
            assert conn._session.sign_of("m9") is Sign.GONE


def test_a_read_is_answered_as_soon_as_others_have_taken_the_place_of_a_silent_member(cluster: Any) -> None:
    """The silence of one call is waited for, and not that of a second one."""
    customer = next(name for name in ("C1", "C2", "C3", "C4", "C5") if primary(cluster, name) == "m1")
    partition = cluster.tables[0].scheme.partition_of({"customer_id": customer})
    with silent_address() as there:
        before = at(cluster.topology, there)
        moved = cluster.moved(partition, cluster.ownership.holders(partition)[1])
        after = structs.replace(moved, members=tuple(member for member in moved.members if member.id != "m1"))
        cluster.topology = before
        with secateur.connect(cluster.address) as conn:
            cluster.topologies = [before, before, before, after]
            started_s = time.monotonic()
            assert conn.execute("one", [customer]).rowcount == 2
            assert time.monotonic() - started_s < 2 * SILENCE_S


def test_a_plan_stays_known_while_the_controller_is_gone(cluster: Any, conn: Connection) -> None:
    assert conn.execute("one", ["C2"]).rowcount == 2
    cluster.run(cluster.controller.server.stop())
    for _ in range(3):
        cluster.failures[primary(cluster, "C2"), "execute"] = [
            MemberLostError("the connection broke", member=primary(cluster, "C2"))
        ]
        assert conn.execute("one", ["C2"]).rowcount == 2
    assert cluster.asked("prepare") == ["controller"]


def test_a_controller_that_does_not_name_the_owners_in_time_is_out_of_reach(cluster: Any, conn: Connection) -> None:
    """The error spoke of a timeout of the connection that nobody had set, and the statement was not tried again."""
    for member in cluster.topology.member_ids:
        cluster.kill(member)
    cluster.failures["controller", "get_topology"] = [DeadlineError("no answer within 2 s")]
    with pytest.raises(UnreachableError, match="the controller of this cluster cannot be reached: it has not answered"):
        conn._session.refresh_topology()
    assert conn._session.refresh_topology().version == cluster.topology.version


def test_a_member_that_did_not_answer_is_named_when_it_has_left_the_cluster_since(
    cluster: Any, conn: Connection
) -> None:
    """Another thread may have learned owners without it, and then nobody knows whose address that was."""
    cluster.kill("m1")
    with pytest.raises(UnreachableError) as caught:
        conn._session.ask_member("m1", Execute("one", ["C2"], True))
    left = tuple(member for member in cluster.topology.members if member.id != "m1")
    cluster.topology = structs.replace(cluster.topology, version=2, members=left)
    conn._session.refresh_topology()
    assert conn._session.member_named_by(caught.value) == "m1"


def test_an_error_about_another_member_keeps_its_address(cluster: Any, conn: Connection) -> None:
    address = next(f"{member.host}:{member.port}" for member in cluster.topology.members if member.id == "m3")
    cluster.failures["m1", "execute"] = [UnreachableError("m3 does not answer me", address=address)]
    with pytest.raises(UnreachableError) as caught:
        conn._session.ask_member("m1", Execute("one", ["C2"], True))
    assert conn._session.member_named_by(caught.value) == "m3"


def primary(cluster: Any, customer: str) -> str:
    return str(cluster.ownership.primary(cluster.tables[0].scheme.partition_of({"customer_id": customer})))
