from __future__ import annotations

import copy
import pickle
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec import structs

import secateur
from secateur import errors
from secateur.client import Connection
from secateur.errors import (
    AuthenticationError,
    InterfaceError,
    NotSupportedError,
    SerializationError,
    UnknownTableError,
    UnreachableError,
)
from secateur.protocol import Versions


def test_connect_and_close(cluster: Any) -> None:
    with secateur.connect(cluster.address) as conn:
        assert conn.address == cluster.address
        assert repr(conn) == f"<Connection {cluster.address}>"
        cursor = conn.execute("count")
        assert not conn.closed
    assert conn.closed
    assert repr(conn).endswith(" closed>")
    conn.close()
    uses = [
        conn.cursor,
        conn.commit,
        conn.rollback,
        lambda: conn.execute("count"),
        lambda: conn.table("orders"),
        lambda: conn.explain("count"),
        cursor.fetchall,
    ]
    for use in uses:
        with pytest.raises(InterfaceError, match="the connection is closed"):
            use()


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnreachableError, match=f"no process answers at 127.0.0.1:{port}"):
        secateur.connect(f"secateur://127.0.0.1:{port}", connect_timeout_s=0)


def test_a_wrong_address_is_told_within_two_seconds_and_a_known_one_is_waited_for() -> None:
    with secateur.start(members=1, runtime="embedded") as cluster:
        host, _, port = cluster.address.removeprefix("secateur://").rpartition(":")
        cluster.connect().close()
    before_s = time.monotonic()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        with pytest.raises(UnreachableError, match="no process answers"):
            secateur.connect(f"secateur://127.0.0.1:{taken.getsockname()[1]}")
    assert time.monotonic() - before_s < 2
    with ThreadPoolExecutor(1) as thread:
        again = thread.submit(secateur.connect, cluster.address, cluster.token)
        with pytest.raises(TimeoutError):
            again.result(timeout=2.5)
        with secateur.start(members=1, runtime="embedded", host=host, port=int(port), token=cluster.token):
            again.result(timeout=10).close()


def test_transactions_are_what_they_are(conn: Connection) -> None:
    conn.commit()
    with pytest.raises(NotSupportedError, match="every statement is a transaction of its own"):
        conn.rollback()


def test_the_errors_are_attributes(conn: Connection) -> None:
    names = [
        "Warning",
        "Error",
        "InterfaceError",
        "DatabaseError",
        "DataError",
        "OperationalError",
        "IntegrityError",
        "InternalError",
        "ProgrammingError",
        "NotSupportedError",
    ]
    assert all(getattr(conn, name) is getattr(errors, name) for name in names)


def test_explain(conn: Connection) -> None:
    explained = conn.explain("SELECT 1", [5])
    assert str(explained) == "plan of SELECT 1"
    assert explained.to_dict() == {"params": [5], "settings": {"pruning": "on"}}
    explained.to_dict()["params"].append(6)
    assert explained.to_dict()["params"] == [5]


def test_an_unknown_table(conn: Connection) -> None:
    with pytest.raises(UnknownTableError, match="nope"):
        conn.table("nope")


def test_a_token(cluster: Any) -> None:
    guarded = type(cluster)(token="secret")
    try:
        guarded.statements = cluster.statements
        with secateur.connect(guarded.address, token="secret") as conn:
            assert conn.execute("count").fetchone() == (0,)
        with pytest.raises(AuthenticationError, match="none was given"):
            secateur.connect(guarded.address)
        with pytest.raises(AuthenticationError, match="the token is wrong"):
            secateur.connect(guarded.address, token="guess")
    finally:
        guarded.stop()


@pytest.mark.parametrize("part", ["connection", "cursor", "table"])
@pytest.mark.parametrize("carry", [pickle.dumps, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_what_has_sockets_says_how_to_get_another(cluster: Any, conn: Connection, part: str, carry: Any) -> None:
    value = {"connection": conn, "cursor": conn.execute("all"), "table": conn.table("orders")}[part]
    with pytest.raises(
        SerializationError, match=rf"send the address, '{cluster.address}', and call secateur.connect\(address\)"
    ):
        carry(value)
    assert conn.execute("count").fetchall() == [(18,)]


def test_a_notebook_shows_the_address_also_where_nobody_answers(cluster: Any, conn: Connection) -> None:
    assert conn._repr_html_().startswith(
        f"<pre>&lt;Connection {cluster.address}&gt;</pre>"
    )  # this cluster has no system tables
    conn.close()
    assert conn._repr_html_() == f"<pre>&lt;Connection {cluster.address} closed&gt;</pre>"


def test_a_version_that_is_heard_late_does_not_undo_a_newer_one(cluster: Any, conn: Connection) -> None:
    """Two threads hear of two catalogs: whoever hears of the older one last must not bring it back."""
    session = conn._session

    class HeardLate(int):
        """A version, between whose comparison and use another thread hears of the next."""

        first = True

        def __gt__(self, other: int) -> bool:
            is_newer = int(self) > other
            if self.first:
                self.first = False
                session.note(Versions(**{kind: int(self) + 1}))
            return is_newer

    for kind in ("catalog_version", "statistics_version", "topology_version"):
        session.note(Versions(**{kind: HeardLate(8)}))
    plans = len(session.statements)
    cluster.catalog_version = 8
    cluster.topology = structs.replace(cluster.topology, version=9)
    conn.execute("one", ["C2"])
    assert len(session.statements) == plans == 0, "a plan of catalog 8 is stale: the connection has heard of 9"
    assert session.topology.version == 9


def test_a_plan_is_remembered_under_the_settings_that_it_was_made_with(cluster: Any, conn: Connection) -> None:
    """Another thread changes a setting while the controller plans."""
    statement = cluster.statements["all"]

    def plan(_: Any) -> Any:
        conn._session.set_plan_option("disabled_rules", "in_pull_out")
        return statement.select("all", cluster.catalog_version), b""

    statement.reply = plan
    conn.execute("all")
    conn.execute("all")
    assert [settings.get("disabled_rules") for _, _, settings in cluster.prepared] == [None, "in_pull_out"]
