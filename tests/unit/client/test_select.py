"""Where statements go, and what the client does when the cluster has changed."""

from __future__ import annotations

import asyncio
import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from eventually import eventually
from msgspec.structs import replace

import secateur
from secateur.client import Connection
from secateur.client.controller_calls import StatementTimeout
from secateur.errors import (
    DataError,
    DeadlineError,
    InterfaceError,
    JobCancelledError,
    MemberLostError,
    ParameterError,
    PruningMismatchError,
    SqlSyntaxError,
    TopologyChangedError,
    UnknownTableError,
    UnreachableError,
)
from secateur.protocol import CONTROLLER_OPERATIONS
from secateur.wire import FrameService


def owner_of(cluster: Any, customer: str) -> str:
    return cluster.ownership.primary(cluster.tables[0].scheme.partition_of({"customer_id": customer}))


def has_serving_call(conn: Connection) -> bool:
    return ("one", str) in conn._session.serving_calls


def replace_statement(statement: Any, select: Any) -> Any:
    """A statement that is planned otherwise."""
    planned = copy.copy(statement)
    planned.select = select
    return planned


@pytest.fixture(params=[1, 3], ids=["executed once", "with a serving call"])
def known(request: pytest.FixtureRequest, conn: Connection) -> Connection:
    """A connection that has executed a text, perhaps so often that it has a serving call."""
    for _ in range(request.param):
        conn.execute("one", ["C2"])
    assert has_serving_call(conn) == (request.param > 1)
    return conn


def test_a_key_goes_straight_to_its_owner_and_nobody_else_is_asked(cluster: Any, conn: Connection) -> None:
    assert conn.execute("one", ["C2"]).fetchall() == [("C2", 1, 1.5), ("C2", 101, None)]
    cluster.log.clear()
    for customer in ("C1", "C5", "C9"):
        cursor = conn.execute("one", [customer])
        assert cursor.rowcount == 2
        stats = cursor.stats
        assert stats is not None
        assert (stats.execution, stats.members_touched, stats.members_total) == ("local", 1, 3)
        assert (stats.partitions_read, stats.partitions_total, stats.pruning, stats.plan_cached) == (1, 8, "on", True)
        assert stats.elapsed_ms > 0
    assert cluster.log == [(owner_of(cluster, customer), "execute") for customer in ("C1", "C5", "C9")]


def test_a_full_scan_goes_to_the_owners_in_turn(cluster: Any, conn: Connection) -> None:
    for _ in range(6):
        cursor = conn.execute("count")
        assert cursor.fetchall() == [(18,)]
        assert cursor.stats is not None
        assert (cursor.stats.execution, cursor.stats.members_touched, cursor.stats.partitions_read) == (
            "distributed",
            3,
            8,
        )
    assert sorted(cluster.asked("execute")) == ["m1", "m1", "m2", "m2", "m3", "m3"]
    assert cluster.asked("prepare") == ["controller"]


def test_a_serving_call_says_what_the_general_way_says(cluster: Any, conn: Connection) -> None:
    cursors = [conn.execute("one", ["C2"]) for _ in range(4)]
    assert has_serving_call(conn)
    first, *_, last = [cursor.stats for cursor in cursors]
    assert first is not None
    assert last is not None
    assert replace(first, elapsed_ms=0.0, plan_cached=True) == replace(last, elapsed_ms=0.0)
    assert last.elapsed_ms > 0
    assert cursors[-1].fetchall() == cursors[0].fetchall() == [("C2", 1, 1.5), ("C2", 101, None)]
    assert cursors[-1].description == cursors[0].description


def test_a_serving_call_is_for_parameters_of_its_types(cluster: Any, known: Connection) -> None:
    assert known.execute("one", ["C1"]).rowcount == 2
    for params in ([], ["a", "b"], {"customer": "C1"}):
        with pytest.raises(ParameterError):
            known.execute("one", params)
    cursor = known.execute("one", [5])
    assert cursor.stats is not None
    assert not cursor.stats.plan_cached


def test_a_text_that_is_served_is_kept_among_many_others(cluster: Any, known: Connection) -> None:
    for number in range(600):
        cluster.statements[f"other {number}"] = cluster.statements["one"]
        known.execute(f"other {number}", ["C1"])
        known.execute("one", ["C2"])
    assert [sql for sql, _, _ in cluster.prepared].count("one") == 1


def test_settings_end_serving_calls(cluster: Any, known: Connection) -> None:
    known._session.set_pruning(known._session.pruning.OFF)
    cursor = known.execute("one", ["C2"])
    assert cursor.stats is not None
    assert (cursor.stats.pruning, cursor.stats.partitions_read) == ("off", 8)
    known._session.set_pruning(None)
    for _ in range(3):
        cursor = known.execute("one", ["C2"])
    assert cursor.stats is not None
    assert (cursor.stats.pruning, cursor.stats.partitions_read) == ("on", 1)


def test_a_serving_call_ends_with_what_it_rests_on(cluster: Any, conn: Connection) -> None:
    session = conn._session

    def of_an_older_topology() -> None:
        session.note_topology(session.topology.version + 1)

    def of_an_older_catalog() -> None:
        cluster.catalog_version += 1
        conn.execute("count")  # the answer tells of it

    ends = {
        "topology": of_an_older_topology,
        "owners": session.refresh_topology,
        "catalog": of_an_older_catalog,
        "pruning": lambda: session.set_pruning(session.pruning.OFF),
        "pruning again": lambda: session.set_pruning(None),
        "an option": lambda: session.set_plan_option("disabled_rules", "x"),
        "the plan": lambda: session.prepare_anew("one", ["C2"]),
    }
    for name, end in ends.items():
        session.set_pruning(None)
        for _ in range(3):
            conn.execute("one", ["C2"])
        assert has_serving_call(conn), name
        end()
        assert not has_serving_call(conn), name
        assert conn.execute("one", ["C2"]).rowcount == 2


def test_what_changes_while_a_serving_call_is_compiled_ends_it(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, known = conn._session, conn._session.known

    def known_before_a_change(sql: str, params: Any) -> Any:
        found = known(sql, params)
        session.forget_calls()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(session, "known", known_before_a_change)
        for _ in range(3):
            assert conn.execute("one", ["C2"]).rowcount == 2
            assert not has_serving_call(conn)
    conn.execute("one", ["C2"])
    assert has_serving_call(conn)


def test_statistics_end_the_serving_calls_of_plans_that_depend_on_them(cluster: Any, conn: Connection) -> None:
    select = cluster.statements["one"].select
    cluster.statements["one"].select = lambda plan, version: replace(select(plan, version), is_estimated=True)
    for _ in range(3):
        conn.execute("one", ["C2"])
    conn._session.note_statistics(7)
    assert not has_serving_call(conn)
    asked = len(cluster.prepared)
    assert conn.execute("one", ["C2"]).rowcount == 2
    assert len(cluster.prepared) == asked + 1


def test_a_plan_that_is_made_meanwhile_has_no_serving_call_of_the_one_before(conn: Connection) -> None:
    session = conn._session
    conn.execute("one", ["C2"])
    before, known = session.serving_calls, session.known("one", ["C2"])
    session.prepare_anew("one", ["C2"])
    assert session.serving_calls is not before
    assert session.known("one", ["C2"]) is not known


@pytest.mark.parametrize(
    "params",
    [["C2"], ("C2",), np.array(["C2"]), [np.str_("C2")], [pa.scalar("C2")]],
    ids=["list", "tuple", "array", "numpy", "Arrow"],
)
def test_a_serving_call_takes_parameters_of_any_form(known: Connection, params: Any) -> None:
    cursor = known.execute("one", params)
    assert cursor.rowcount == 2
    assert cursor.stats is not None
    assert cursor.stats.plan_cached


def test_types_on_which_a_plan_depends_have_serving_calls_of_their_own(cluster: Any, conn: Connection) -> None:
    select = cluster.statements["one"].select
    cluster.statements["typed"] = replace_statement(
        cluster.statements["one"], lambda plan, version: replace(select(plan, version), typed=(1,), parameter_count=2)
    )
    for value in (1, 2**40, 1, 2**40, 1, 2**40):
        assert conn.execute("typed", ["C2", value]).rowcount == 2
    assert [params for sql, params, _ in cluster.prepared if sql == "typed"] == [["C2", 1], ["C2", 2**40]]
    assert sum(key[0] == "typed" for key in conn._session.serving_calls) == 2
    assert [asked["params"] for asked in cluster.executed if asked["plan"] == "typed"] == [
        ["C2", 1],
        ["C2", 2**40],
    ] * 3


def test_serving_calls_are_bounded(cluster: Any, conn: Connection) -> None:
    for number in range(600):
        cluster.statements[f"other {number}"] = cluster.statements["one"]
        for _ in range(2):
            assert conn.execute(f"other {number}", ["C1"]).rowcount == 2
    assert 0 < len(conn._session.serving_calls) <= 512


def test_a_cursor_tells_the_statistics_of_its_last_statement_only(known: Connection) -> None:
    cursor = known.cursor().execute("one", ["C2"])
    first, rows = cursor.stats, cursor.fetchall()
    assert cursor.stats is first
    assert cursor.execute("one", ["C5"]).stats is not first
    with pytest.raises(SqlSyntaxError):
        cursor.execute("???")
    assert cursor.stats is None
    assert cursor.rowcount == -1
    assert rows


def test_a_failed_serving_call_counts_as_the_first_attempt(cluster: Any, known: Connection) -> None:
    owner = owner_of(cluster, "C2")
    cluster.failures[owner, "execute"] = [TopologyChangedError("moved")]
    cluster.log.clear()
    assert known.execute("one", ["C2"]).rowcount == 2
    assert cluster.log == [
        (owner, "execute"),
        ("controller", "get_topology"),
        ("controller", "prepare"),
        (owner, "execute"),
    ]
    assert not has_serving_call(known)


@pytest.mark.parametrize("how", ["interrupt", "timeout", "SET statement_timeout"])
def test_a_serving_call_is_ended_as_any_statement(cluster: Any, known: Connection, how: str) -> None:
    cluster.latch = asyncio.Event()
    cursor = known.cursor()
    if how == "interrupt":
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(cursor.execute, "one", ["C2"])
            eventually(lambda: (owner_of(cluster, "C2"), "execute") in cluster.log[-1:])
            known.interrupt()
            with pytest.raises(JobCancelledError, match="interrupt"):
                waiting.result(10)
    else:
        if how != "timeout":
            known._session.statement_timeout = StatementTimeout("200ms", 200)
        with pytest.raises(DeadlineError, match="longer than"):
            cursor.execute("one", ["C2"], timeout=0.2 if how == "timeout" else None)
        known._session.statement_timeout = StatementTimeout("0", 0)
    assert not known._session.running
    cluster.call(cluster.latch.set)
    cluster.latch = None
    assert cursor.execute("one", ["C2"]).rowcount == 2


def test_a_cancellation_between_statements_has_no_effect(known: Connection) -> None:
    cursor = known.cursor().execute("one", ["C2"])
    cursor.cancel()
    known.interrupt()
    assert len(cursor.fetchall()) == 2
    assert cursor.execute("one", ["C2"]).rowcount == 2


def test_threads_share_the_serving_calls_of_a_connection(cluster: Any, known: Connection) -> None:
    def work(number: int) -> None:
        customer = f"C{number % 9 + 1}"
        for _ in range(100):
            assert {row[0] for row in known.execute("one", [customer]).fetchall()} == {customer}
            if number == 0:
                known._session.refresh_topology()

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, number) for number in range(6)]:
            done.result(60)
    assert not known._session.running


def test_a_closed_connection_or_cursor_serves_nothing(known: Connection) -> None:
    cursor, other = known.cursor(), known.cursor()
    cursor.close()
    with pytest.raises(InterfaceError, match="cursor is closed"):
        cursor.execute("one", ["C2"])
    known.close()
    with pytest.raises(InterfaceError, match="connection is closed"):
        other.execute("one", ["C2"])


def test_an_error_of_the_statement_is_not_tried_again(cluster: Any, known: Connection) -> None:
    cluster.failures[owner_of(cluster, "C2"), "execute"] = [DataError("divided by zero")]
    cluster.log.clear()
    with pytest.raises(DataError, match="divided by zero"):
        known.execute("one", ["C2"])
    assert cluster.log == [(owner_of(cluster, "C2"), "execute")]
    assert known.execute("one", ["C2"]).rowcount == 2


def test_a_cursor_that_serves_can_be_cancelled(cluster: Any, known: Connection) -> None:
    cluster.latch = asyncio.Event()
    cursor = known.cursor()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cursor.execute, "one", ["C2"])
        eventually(lambda: (owner_of(cluster, "C2"), "execute") in cluster.log)
        cursor.cancel()
        with pytest.raises(JobCancelledError, match=r"cursor\.cancel"):
            waiting.result(10)
    cluster.call(cluster.latch.set)
    assert known.execute("one", ["C2"]).rowcount == 2


def test_no_partition_is_answered_without_any_frame(cluster: Any, conn: Connection) -> None:
    conn.execute("never")
    cluster.log.clear()
    cursor = conn.execute("never")
    assert cursor.fetchall() == [(0,)]
    assert cursor.stats is not None
    assert (
        cursor.stats.execution,
        cursor.stats.members_touched,
        cursor.stats.partitions_read,
        cursor.stats.partitions_total,
    ) == ("none", 0, 0, 8)
    assert cluster.log == []


def test_a_null_key_matches_nothing(conn: Connection) -> None:
    cursor = conn.execute("one", [None])
    assert cursor.fetchall() == []
    assert [item[0] for item in cursor.description or ()] == ["customer_id", "id", "amount"]
    assert cursor.stats is not None
    assert cursor.stats.execution == "none"


def test_no_partition_without_a_stored_answer_asks_one_member(cluster: Any, conn: Connection) -> None:
    assert conn.execute("never, with parameters", [1]).fetchall() == [(0,)]
    assert len(cluster.asked("execute")) == 1


def test_a_replicated_table_is_read_at_any_member_in_turn(cluster: Any, conn: Connection) -> None:
    for _ in range(3):
        cursor = conn.execute("countries")
        assert cursor.stats is not None
        assert cursor.stats.execution == "local"
    assert sorted(cluster.asked("execute")) == ["m1", "m2", "m3"]


def test_with_pruning_off_everything_is_read(cluster: Any, conn: Connection) -> None:
    conn._session.pruning = conn._session.pruning.OFF
    cursor = conn.execute("one", ["C2"])
    assert cursor.fetchall() == [("C2", 1, 1.5), ("C2", 101, None)]
    assert cursor.stats is not None
    assert (cursor.stats.execution, cursor.stats.partitions_read, cursor.stats.pruning) == ("distributed", 8, "off")
    assert "execution='distributed', pruning='off'" in repr(cursor.stats)
    assert not cursor.stats.pruning
    assert cluster.executed[-1]["pruning"] is False


def test_verify_runs_both_ways(cluster: Any, conn: Connection) -> None:
    conn._session.pruning = conn._session.pruning.VERIFY
    cursor = conn.execute("one", ["C2"])
    assert cursor.fetchall() == [("C2", 1, 1.5), ("C2", 101, None)]
    assert [args["pruning"] for args in cluster.executed] == [True, False]
    assert cursor.stats is not None
    assert (cursor.stats.partitions_read, cursor.stats.pruning) == (1, "verify")


def test_verify_finds_a_wrong_pruning(cluster: Any, conn: Connection) -> None:
    wrong = conn.execute("wrongly pruned").fetchall()
    assert wrong != [(18,)]
    conn._session.pruning = conn._session.pruning.VERIFY
    with pytest.raises(
        PruningMismatchError, match="1 rows from 1 partitions against 1 rows from 8, for 'wrongly pruned'"
    ) as caught:
        conn.execute("wrongly pruned")
    assert caught.value.details["sql"] == "wrongly pruned"
    cluster.statements["wrongly pruned"].deterministic = False
    conn._session.statements.clear()
    assert conn.execute("wrongly pruned").fetchall() == wrong


def test_verify_is_not_fooled_by_a_write_in_between(cluster: Any, conn: Connection) -> None:
    conn._session.pruning = conn._session.pruning.VERIFY
    counts = iter([18, 19, 19, 19])
    cluster.statements["count"].run = lambda *_: pa.table({"count": [next(counts)]})
    assert conn.execute("count").fetchall() == [(19,)]


def test_a_moved_partition_is_followed(cluster: Any, known: Connection) -> None:
    partition = cluster.tables[0].scheme.partition_of({"customer_id": "C2"})
    before = cluster.ownership.primary(partition)
    after = next(name for name in cluster.members if name != before)
    cluster.topology = cluster.moved(partition, after)
    cluster.log.clear()
    cursor = known.execute("one", ["C2"])
    assert cursor.rowcount == 2
    assert cursor.stats is not None
    assert cursor.stats.topology_version == 2
    assert cluster.log == [
        (before, "execute"),
        ("controller", "get_topology"),
        ("controller", "prepare"),
        (after, "execute"),
    ]
    known.execute("one", ["C2"])
    assert cluster.log[-1] == (after, "execute")
    assert len(cluster.log) == 5


def test_an_answer_that_speaks_of_a_newer_topology_is_heard(cluster: Any, conn: Connection) -> None:
    conn.execute("count")
    cluster.topology = cluster.moved(0, "m3")
    conn.execute("count")  # answered by an owner that has the newer one already
    cluster.log.clear()
    conn.execute("count")
    assert cluster.log[0] == ("controller", "get_topology")
    conn.execute("count")
    assert cluster.asked("get_topology") == ["controller"]


def test_a_lost_member_is_followed_by_its_backup(cluster: Any, known: Connection) -> None:
    partition = cluster.tables[0].scheme.partition_of({"customer_id": "C2"})
    lost = cluster.ownership.primary(partition)
    heir = cluster.ownership.holders(partition)[1]
    # The controller notices only when it is asked for the third time.
    cluster.topologies = [cluster.topology, cluster.topology, cluster.moved(partition, heir)]
    cluster.kill(lost)
    cursor = known.execute("one", ["C2"])
    assert cursor.rowcount == 2
    assert cluster.asked("get_topology") == ["controller"] * 3
    assert cluster.log[-1] == (heir, "execute")


def test_what_does_not_mend_is_given_up(cluster: Any, known: Connection) -> None:
    known._session.retry_s = 0.1
    cluster.failures[owner_of(cluster, "C2"), "execute"] = [TopologyChangedError("moved, always") for _ in range(1000)]
    with pytest.raises(TopologyChangedError, match="moved, always"):
        known.execute("one", ["C2"])
    assert known.execute("one", ["C1"] if owner_of(cluster, "C1") != owner_of(cluster, "C2") else ["C3"]).rowcount == 2


def test_a_stale_plan_is_planned_again(cluster: Any, known: Connection) -> None:
    """Somebody else dropped the table and created it again: members do not know the id of our plan any more."""
    cluster.failures[owner_of(cluster, "C2"), "execute"] = [UnknownTableError("no table 7")]
    cluster.log.clear()
    assert known.execute("one", ["C2"]).rowcount == 2
    assert cluster.asked("prepare") == ["controller"]
    cluster.failures[owner_of(cluster, "C2"), "execute"] = [UnknownTableError("no table 7")]
    del cluster.statements["one"]
    with pytest.raises(SqlSyntaxError):
        known.execute("one", ["C2"])


def test_a_newer_catalog_drops_all_plans(cluster: Any, conn: Connection) -> None:
    conn.execute("one", ["C2"])
    conn.execute("count")
    cluster.catalog_version = 2
    conn.execute("never")
    cluster.log.clear()
    conn.execute("one", ["C2"])
    conn.execute("count")
    assert cluster.asked("prepare") == ["controller"] * 2


def test_plans_are_kept_by_text_and_parameter_types(cluster: Any, conn: Connection) -> None:
    for params in (["C1"], ["C2"], ("C3",)):
        conn.execute("one", params)
    assert len(cluster.prepared) == 1
    cursor = conn.execute("one", [5])
    assert len(cluster.prepared) == 2
    assert cursor.stats is not None
    assert not cursor.stats.plan_cached


@pytest.mark.parametrize(
    ("sql", "params", "message"),
    [
        pytest.param("one", [], "has 1 parameter, 0 were given", id="too few"),
        pytest.param("one", ["a", "b"], "has 1 parameter, 2 were given", id="too many"),
        pytest.param("one", {"customer": "C1"}, "without names: pass a sequence", id="names for positions"),
        pytest.param("named", ["C1"], r"named parameters \(\$customer\): pass a mapping", id="positions for names"),
        pytest.param("named", {"client": "C1"}, r"missing \$customer; not in the statement: \$client", id="other name"),
        pytest.param("one", [object()], "parameter 1 is a builtins.object, which no column holds", id="type"),
        pytest.param("one", "C1", "have to be a sequence.*not a str", id="text"),
    ],
)
def test_wrong_parameters_are_said_and_the_connection_goes_on(
    conn: Connection, sql: str, params: Any, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        conn.execute(sql, params)
    assert conn.execute("named", {"customer": "C1"}).rowcount == 2


def test_an_error_of_the_planner_arrives_as_it_is(conn: Connection) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        conn.execute("SELEC 1")
    assert caught.value.details == {"line": 1, "column": 1}
    assert conn.execute("count").fetchone() == (18,)


def test_no_answer_in_time(cluster: Any) -> None:
    with secateur.connect(cluster.address, timeout_s=1.5) as conn:
        cluster.latch = asyncio.Event()
        with pytest.raises(DeadlineError, match=r"did not answer 'execute' within 1.5 s"):
            conn.execute("count")
        cluster.call(cluster.latch.set)
        assert conn.execute("count").fetchone() == (18,)


def test_a_controller_that_goes_is_an_error_and_known_statements_go_on(cluster: Any, conn: Connection) -> None:
    conn.execute("one", ["C2"])
    cluster.run(cluster.controller.server.stop())
    conn._session.controller_wait_s = 0.5
    assert conn.execute("one", ["C2"]).rowcount == 2
    with pytest.raises((UnreachableError, MemberLostError)):
        conn.execute("count")


def test_another_cluster_at_the_same_address_is_noticed(cluster: Any, conn: Connection) -> None:
    conn.execute("count")
    port = cluster.controller.server.port
    cluster.run(cluster.controller.server.stop())
    cluster.cluster_id = "another"
    conn._session.controller_wait_s = 0.0
    with pytest.raises(MemberLostError):
        conn.explain("count")

    async def again() -> Any:
        service = FrameService(cluster.controller, CONTROLLER_OPERATIONS)
        server = type(cluster.controller.server)(service, port=port)
        await server.start()
        return server

    server = cluster.run(again())
    try:
        with pytest.raises(UnreachableError, match="belongs to another cluster now"):
            conn.explain("count")
    finally:
        cluster.run(server.stop())


def test_threads_share_a_connection(cluster: Any, conn: Connection) -> None:
    def ask(number: int) -> bool:
        customer = f"C{number % 9 + 1}"
        return conn.execute("one", [customer]).fetchall()[0][0] == customer

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(300)))
    assert len(cluster.asked("execute")) == 300
