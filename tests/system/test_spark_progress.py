"""The progress of a load, as the driver shows it: who sees it, and that a cluster out of reach is no failure."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors.spark import ProgressReport
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.load import progress_shown
from secateur.connectors.spark.staging import Stager
from secateur.protocol import AbortLoad, StageRows

ROWS = 1_000
WAIT_S = 60.0


class Terminal(io.StringIO):
    """What a terminal would show; ``shown`` is set by the first report."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.shown = threading.Event()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        if "rows" in text:
            self.shown.set()
        return super().write(text)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 4")
        yield cluster


@contextmanager
def staged(cluster: Cluster, load_id: str) -> Iterator[Endpoint]:
    """A load of which a task has sent its rows."""
    endpoint = Endpoint(cluster.address, cluster.token)
    with endpoint.session() as session:
        table = session.table("t")
        with Stager(
            table, session.topology_of(table), StageRows(load_id, table.table_id, 1, []), token=endpoint.token
        ) as stager:
            stager.add(pa.record_batch({"k": pa.array(range(ROWS), pa.int64())}))
            stager.finish()
        try:
            yield endpoint
        finally:
            session.ask(AbortLoad(load_id))


def test_a_function_gets_rows_partitions_and_rate(cluster: Cluster) -> None:
    reports: list[ProgressReport] = []
    reported = threading.Event()

    def report(progress: ProgressReport) -> None:
        reports.append(progress)
        if len(reports) == 2:
            reported.set()

    with staged(cluster, "told") as endpoint, progress_shown(endpoint, "t", "told", report):
        assert reported.wait(WAIT_S)
    first, second = reports[:2]
    assert (first.table, first.rows, first.partitions, first.is_publishing) == ("t", ROWS, 4, False)
    assert 0 < first.rows_per_s <= ROWS
    assert (second.rows, second.rows_per_s) == (ROWS, 0)
    assert second.seconds > first.seconds
    assert str(first).startswith(f"t: 1,000 rows in 4 partitions, {first.rows_per_s:,.0f} rows/s, ")


@pytest.mark.parametrize(
    ("is_terminal", "show"),
    [
        pytest.param(True, None, id="a terminal"),
        pytest.param(False, True, id="no terminal, but asked for"),
    ],
)
def test_a_line_is_shown_and_erased(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, is_terminal: bool, show: bool | None
) -> None:
    terminal = Terminal(is_terminal=is_terminal)
    monkeypatch.setattr("sys.stderr", terminal)
    with staged(cluster, f"line {show}") as endpoint, progress_shown(endpoint, "t", f"line {show}", show):
        assert terminal.shown.wait(WAIT_S)
    assert "t: 1,000 rows in 4 partitions" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("is_terminal", "show"),
    [
        pytest.param(False, None, id="no terminal"),
        pytest.param(True, False, id="a terminal, but not wanted"),
    ],
)
def test_nothing_is_asked_where_nobody_looks_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, is_terminal: bool, show: bool | None
) -> None:
    monkeypatch.setattr("sys.stderr", Terminal(is_terminal=is_terminal))
    with progress_shown(Endpoint(cluster.address, cluster.token), "t", "silent", show):
        assert "secateur-progress" not in {thread.name for thread in threading.enumerate()}


def test_a_cluster_that_refuses_to_tell_is_no_failure(cluster: Cluster) -> None:
    reports: list[ProgressReport] = []
    with progress_shown(Endpoint(cluster.address, "a wrong token"), "t", "refused", reports.append):
        follower = next((thread for thread in threading.enumerate() if thread.name == "secateur-progress"), None)
        if follower is not None:  # it has not ended yet
            follower.join(WAIT_S)
            assert not follower.is_alive()
    assert reports == []
