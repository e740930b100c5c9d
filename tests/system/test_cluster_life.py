"""Starting, stopping, dying: nothing is left behind, and what survives still answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.connectors import batch_source, collect
from secateur.wire import Channel

DDL = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 13"
ROWS = pa.table({"id": pa.array(range(1000)), "v": pa.array(range(1000))})


def listening() -> set[int]:
    return {
        connection.laddr.port
        for connection in psutil.Process().net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


def test_an_embedded_cluster_starts_in_half_a_second_and_leaves_nothing() -> None:
    with secateur.start(members=1, runtime="embedded"):
        pass  # imports
    threads, ports = set(threading.enumerate()), listening()
    took_s = []
    for _ in range(3):  # on a busy machine, one start may wait for a core
        started_s = time.perf_counter()
        cluster = secateur.start(members=3, runtime="embedded")
        took_s.append(time.perf_counter() - started_s)
        with cluster, cluster.connect() as conn:
            conn.execute(DDL)
            conn.table("t").load(ROWS)
            assert conn.execute("SELECT sum(v) FROM t").fetchall() == [(499_500,)]
        assert set(threading.enumerate()) == threads
        assert listening() == ports
    assert min(took_s) < 0.5


def test_stop_may_be_called_twice_and_using_a_stopped_cluster_says_so() -> None:
    cluster = secateur.start(members=1, runtime="embedded")
    cluster.stop()
    cluster.stop()
    for use in (cluster.connect, cluster.members, lambda: cluster.kill_member("m1")):
        with pytest.raises(secateur.InterfaceError, match="the cluster is stopped"):
            use()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"members": 0}, "a cluster has 1 to 1024 members"),
        ({"runtime": "docker"}, 'use "ray" or "embedded"'),
        ({"memebrs": 3}, "known settings: members, runtime"),
    ],
    ids=["no-members", "runtime", "setting"],
)
def test_wrong_settings_start_nothing(arguments: dict[str, object], message: str) -> None:
    threads = set(threading.enumerate())
    with pytest.raises(secateur.ProgrammingError, match=message):
        secateur.start(**{"runtime": "embedded", **arguments})  # type: ignore[arg-type]
    assert set(threading.enumerate()) == threads


@pytest.mark.smoke
def test_a_token_is_asked_of_everybody() -> None:
    with secateur.start(members=2, runtime="embedded", token="s3cret") as cluster:
        with cluster.connect() as conn:
            conn.execute(DDL)
            conn.table("t").load(ROWS)
            assert conn.execute("SELECT count(*) FROM t").fetchall() == [(1000,)]
        for token in (None, "wrong"):
            with pytest.raises(secateur.OperationalError, match="token"):
                secateur.connect(cluster.address, token=token)
        assert "s3cret" not in repr(cluster)


@pytest.mark.smoke
def test_a_dead_member_is_succeeded_by_its_backups() -> None:
    with (
        secateur.start(members=3, runtime="embedded", member_silence_s=2.0, replace_members=False) as cluster,
        cluster.connect() as conn,
    ):
        conn.execute(DDL)
        conn.table("t").load(ROWS)
        cluster.kill_member("m2")
        assert [member.is_alive for member in cluster.members()] == [True, False, True]
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(1000, 499_500)]
        for key in range(50):
            assert conn.execute("SELECT v FROM t WHERE id = ?", [key]).fetchall() == [(key,)]
        conn.execute("INSERT INTO t VALUES (5000, 1)")
        assert conn.execute("SELECT v FROM t WHERE id = 5000").fetchall() == [(1,)]
        with pytest.raises(secateur.ProgrammingError, match="there is no live member 'm2'; there is m1, m3"):
            cluster.kill_member("m2")


def test_partitions_without_a_backup_are_named_when_their_member_dies() -> None:
    with secateur.start(members=2, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute(DDL + " BACKUPS 0")
        conn.table("t").load(ROWS)
        table = conn.table("t")
        on_m1 = next(key for key in range(1000) if table.owner_of(table.partition_of({"id": key})) == "m1")
        cluster.kill_member("m2")
        assert conn.execute("SELECT v FROM t WHERE id = ?", [on_m1]).fetchall() == [(on_m1,)]
        with pytest.raises(secateur.OperationalError, match="m2"):
            conn.execute("SELECT count(*) FROM t")


SCRIPT = """
import signal, sys, secateur
signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background, it is ignored
cluster = secateur.start(members=2, runtime={runtime!r})
conn = cluster.connect()
conn.execute("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
print("up", flush=True)
{ending}
"""


def run_to_the_end(runtime: str, ending: str, *, interrupt: bool = False) -> None:
    """Run a script that starts a cluster, and see that no process of it outlives it."""
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    script = SCRIPT.format(runtime=runtime, ending=ending)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "up\n"
        family = psutil.Process(process.pid).children(recursive=True)
        if interrupt:
            process.send_signal(signal.SIGINT)
        process.wait(60)
    eventually(
        lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in family),
        "processes are left",
    )


@pytest.mark.parametrize("runtime", ["embedded", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
@pytest.mark.parametrize(
    ("ending", "interrupt"),
    [
        pytest.param("", False, id="no-stop"),
        pytest.param("raise ValueError('user code')", False, marks=pytest.mark.slow, id="exception"),
        pytest.param("import threading; threading.Event().wait()", True, id="ctrl-c"),
    ],
)
def test_no_process_outlives_the_one_that_started_it(runtime: str, ending: str, interrupt: bool) -> None:
    run_to_the_end(runtime, ending, interrupt=interrupt)


def test_a_secret_is_made_that_only_this_process_has() -> None:
    with secateur.start(members=1, runtime="embedded") as cluster:
        assert cluster.token is not None
        assert len(cluster.token) >= 32
        with cluster.connect() as conn, secateur.connect(cluster.address) as again:
            assert conn.execute("SELECT 1").fetchall() == again.execute("SELECT 1").fetchall() == [(1,)]
        shown = [repr(cluster), repr(conn)]
        assert not [text for text in shown if cluster.token in text]
        ask = (
            f"import secateur, sys; secateur.connect({cluster.address!r}, **eval(sys.stdin.read())).execute('SELECT 1')"
        )
        for how, environment, is_let_in in (
            ({}, {}, False),
            ({"token": "guess"}, {}, False),
            ({"token": cluster.token}, {}, True),
            ({}, {"SECATEUR_TOKEN": cluster.token}, True),
        ):
            done = subprocess.run(
                [sys.executable, "-c", ask],
                input=repr(how),
                text=True,
                capture_output=True,
                env=os.environ | environment,
                timeout=60,
                check=False,
            )
            assert (done.returncode == 0) == is_let_in, done.stderr
            assert is_let_in or "AuthenticationError" in done.stderr
        for address in (cluster.address, cluster.members()[0].address):
            with pytest.raises(secateur.OperationalError, match="asks for a token"):
                Channel("127.0.0.1", int(address.rpartition(":")[2])).connect()
    with pytest.raises(secateur.OperationalError):
        secateur.connect(cluster.address, connect_timeout_s=0.1)


def test_members_load_their_kernels_before_the_first_statement() -> None:
    """The first one would hold up the event loop for it."""
    code = """
import secateur, sys, time
with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
    conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    while not hasattr(sys.modules.get("secateur.engine.sql.serving_program"), "serving_program"):
        time.sleep(0.01)
    before = set(sys.modules)
    conn.execute("SELECT * FROM t WHERE k = 1").fetchall()
    print({name.partition(".")[0] for name in set(sys.modules) - before})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout in ("set()\n", "{'secateur'}\n"), done.stdout


def test_the_address_and_the_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECATEUR_ADDRESS", raising=False)
    with pytest.raises(secateur.InterfaceError, match="SECATEUR_ADDRESS"):
        secateur.connect()
    with secateur.start(members=1, runtime="embedded", token="s3cret") as cluster:
        monkeypatch.setenv("SECATEUR_ADDRESS", cluster.address)
        monkeypatch.setenv("SECATEUR_TOKEN", "s3cret")
        with secateur.connect() as conn:
            assert conn.execute("SELECT 1").fetchall() == [(1,)]
        with pytest.raises(secateur.OperationalError, match="asks for a token"):
            secateur.connect(token="")
        monkeypatch.setenv("SECATEUR_TOKEN", "wrong")
        with cluster.connect() as conn:  # knows better than the environment
            assert conn.execute("SELECT 1").fetchall() == [(1,)]


def test_without_a_secret_nobody_s_functions_are_run() -> None:
    with secateur.start(members=2, runtime="embedded", token="", allow_code=True) as cluster:
        assert cluster.token is None
        with secateur.connect(cluster.address) as conn:
            rows = secateur.Pipeline().read_from(batch_source(pa.table({"n": [1, 2]})))
            assert rows.write_to(collect()).submit(conn).result().num_rows == 2
            for light in (True, False):
                with pytest.raises(secateur.Error, match="allow_code=True and a token"):
                    rows.map(lambda batch: batch).write_to(collect()).submit(conn, light=light).result()


def test_a_program_that_ends_without_stopping_its_cluster_ends_quietly() -> None:
    program = (
        "import secateur; cluster = secateur.start(members=2, runtime='embedded');"
        " cluster.connect().execute('SELECT 1')"
    )
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, timeout=60, check=True)
    assert done.stderr == ""
