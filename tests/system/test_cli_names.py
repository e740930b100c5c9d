"""Several clusters on one machine: ``--name`` says which, and what commands print is what to type here."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from test_cli import commands
from typer.main import get_command
from typer.testing import CliRunner, Result

import secateur
from secateur.cli import clusters
from secateur.cli.app import app
from secateur.cli.clusters import KnownCluster, keep, with_kept
from secateur.cluster import Cluster

Here = Callable[..., Result]
ALL = list(commands(get_command(app)))
STARTS_ONE = [("start",), ("demo",)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Runs commands on a machine where nothing was started."""
    for name in ("SECATEUR_ADDRESS", "SECATEUR_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(clusters.HOME_VARIABLE, str(tmp_path / "home"))
    return lambda *words: CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, Cluster]]:
    with ExitStack() as running:
        started = {}
        for name in ("default", "ops"):
            started[name] = running.enter_context(secateur.start(members=1, runtime="embedded"))
            with started[name].connect() as conn:
                conn.execute(f"CREATE TABLE only_{name} (k BIGINT PRIMARY KEY)")
        yield started


@pytest.fixture
def both(here: Here, served: dict[str, Cluster]) -> Iterator[Here]:
    """A machine with two clusters, which this process holds."""
    with ExitStack() as held:
        for name, cluster in served.items():
            held.enter_context(clusters.locked(name))
            clusters.remember(KnownCluster(name, cluster.address, cluster.token or "", os.getpid()))
        yield here


def instructions(said: str) -> dict[str, list[str]]:
    """What a text says between backticks to type, by the command: its words behind ``secateur``."""
    found = [shlex.split(text) for text in re.findall(r"`secateur ([^`]*)`", said)]
    return {words[0]: words for words in found}


def tables(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [row["name"] for row in json.loads(result.stdout)]


def test_what_start_prints_is_what_to_type_here(here: Here) -> None:
    first = here("start", "--runtime", "embedded", "--members", "1")
    second = here("start", "--name", "ops", "--runtime", "embedded", "--members", "1")
    try:
        assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
        again = here("start", "--name", "ops", "--runtime", "embedded")
        assert again.exit_code == 1
        assert instructions(again.stderr)["stop"] == ["stop", "--name", "ops"]
        assert here(*instructions(second.stdout)["sql"], "-c", "CREATE TABLE t (k BIGINT PRIMARY KEY)").exit_code == 0
        assert tables(here(*instructions(second.stdout)["sql"], "-c", "SHOW TABLES", "--json")) == ["t"]
        assert tables(here(*instructions(first.stdout)["sql"], "-c", "SHOW TABLES", "--json")) == []
    finally:
        ended = here(*instructions(second.stdout)["stop"], "--json")
        left = [cluster.name for cluster in clusters.running()]
        also = here(*instructions(first.stdout)["stop"], "--json")
    assert json.loads(ended.stdout) == {"ended": "ops"}
    assert left == ["default"]
    assert json.loads(also.stdout) == {"ended": "default"}
    assert clusters.running() == []


@pytest.mark.parametrize("words", [pytest.param(words, id=" ".join(words)) for words in ALL])
def test_each_command_takes_a_name(here: Here, words: tuple[str, ...]) -> None:
    command = get_command(app)
    for word in words:
        command = command.commands[word]  # type: ignore[attr-defined]
    assert any("--name" in option.opts for option in command.params)


WITHOUT_ARGUMENTS = {
    ("load",): ["{file}", "--table", "t"],
    ("export",): ["x.csv", "--table", "t"],
    ("kill",): ["m1:1"],
    ("backup",): ["backup"],
    ("restore",): ["{folder}"],
    ("jobs", "logs"): ["one"],
    ("token", "create"): ["--role", "read"],
    ("token", "revoke"): ["1a"],
    ("sql",): ["-c", "SELECT 1"],
    ("dashboard",): ["--port", "0"],
}


@pytest.mark.parametrize(
    "words", [pytest.param(words, id=" ".join(words)) for words in ALL if words not in [*STARTS_ONE, ("doctor",)]]
)
def test_without_a_name_a_command_lists_the_clusters_and_does_nothing(
    both: Here, tmp_path: Path, words: tuple[str, ...], served: dict[str, Cluster]
) -> None:
    (tmp_path / "a.csv").write_text("k\n1\n")
    given = [word.format(file=tmp_path / "a.csv", folder=tmp_path) for word in WITHOUT_ARGUMENTS.get(words, [])]
    refused = both(*words, *given)
    assert refused.exit_code == 2, refused.output
    assert refused.stdout == ""
    for name, cluster in served.items():
        assert f"{name} ({cluster.address})" in refused.stderr
    unknown = both(*words, *given, "--name", "other")
    assert unknown.exit_code == 1
    assert instructions(unknown.stderr)["start"] == ["start", "--name", "other"]
    assert f"ops ({served['ops'].address})" in unknown.stderr


def test_a_name_stands_above_the_environment(
    both: Here, served: dict[str, Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECATEUR_ADDRESS", served["default"].address)
    monkeypatch.setenv("SECATEUR_TOKEN", served["default"].token or "")
    show = ["-c", "SHOW TABLES", "--json"]
    assert tables(both("sql", "--name", "ops", *show)) == ["only_ops"]
    assert tables(both("sql", *show)) == ["only_default"]
    assert tables(both("sql", "--name", "ops", "--token", served["ops"].token or "", *show)) == ["only_ops"]
    assert both("sql", "--name", "ops", "--token", "wrong", *show).exit_code == 1
    two = both("sql", served["ops"].address, "--name", "ops", *show)
    assert two.exit_code == 2
    assert "pass one of them" in two.stderr
    monkeypatch.setenv("SECATEUR_TOKEN", served["ops"].token or "")
    assert tables(both("sql", served["ops"].address, *show)) == ["only_ops"]


def test_stop_ends_no_cluster_that_the_environment_does_not_mean(both: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECATEUR_ADDRESS", "secateur://192.0.2.7:4000")
    refused = both("stop")
    assert refused.exit_code == 1
    assert "secateur://192.0.2.7:4000, was not started here" in refused.stderr
    assert [cluster.name for cluster in clusters.running()] == ["default", "ops"]


def test_what_is_said_of_a_new_token_is_what_to_type(both: Here) -> None:
    made = both("token", "create", "--role", "read", "--for", "grafana", "--name", "ops")
    assert made.exit_code == 0, made.output
    (listed,) = json.loads(both("token", "list", "--name", "ops", "--json").stdout)
    assert listed["name"] == "grafana"
    revoked = both(*instructions(made.stderr)["token"], "--json")
    assert json.loads(revoked.stdout) == {"revoked": listed["id"]}
    assert both("token", "list", "--name", "ops").stdout == "there are no tokens beside that of the cluster\n"


def test_options_of_jobs_hold_for_its_commands(both: Here) -> None:
    before, behind = both("jobs", "--name", "ops", "logs", "nope"), both("jobs", "logs", "nope", "--name", "ops")
    assert (before.exit_code, before.stderr) == (1, behind.stderr)
    assert "'nope'" in behind.stderr


def test_doctor_looks_at_all_clusters_or_at_the_named_one(both: Here) -> None:
    def found(*words: str) -> list[tuple[str, str]]:
        found = json.loads(both("doctor", "--json", *words).stdout)
        return [(one["what"], one["state"]) for one in found if one["what"].startswith("cluster ")]

    assert found() == [("cluster default", "ok"), ("cluster ops", "ok")]
    assert found("--name", "ops") == [("cluster ops", "ok")]


def test_doctor_says_how_to_end_a_cluster_that_does_not_answer(here: Here) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        clusters.remember(KnownCluster("gone", f"secateur://127.0.0.1:{nobody.getsockname()[1]}", "t"))
        found = json.loads(here("doctor", "--json", "--name", "gone").stdout)
    (cluster,) = (one for one in found if one["what"] == "cluster gone")
    assert cluster["state"] == "missing"
    assert instructions(cluster["advice"])["stop"] == ["stop", "--name", "gone"]


def test_doctor_shows_what_was_tested_beside_what_is_installed(here: Here) -> None:
    found = {one["what"]: one for one in json.loads(here("doctor", "--json").stdout)}
    assert {"duckdb", "pyarrow", "msgspec", "msgpack", "numpy", "xxhash", "cloudpickle"} <= set(found)
    assert found["msgspec"]["tested"]
    assert [one["state"] for one in found.values() if one["what"] in ("msgspec", "xxhash")] == ["ok", "ok"]
    assert found["cores"]["tested"] == ""


@pytest.mark.slow
def test_what_the_demo_says_at_its_end_begins_with_what_is_missing(both: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # without Ray
    said = both("demo", "--name", "ops").stdout
    assert "(local: 1 of 24 partitions, 1 of 3 members)" in said
    done = instructions(said)
    assert done["load"][-2:] == ["--name", "ops"]
    assert "start" not in done, "it runs already"


def test_a_name_of_a_detached_cluster_is_taken(here: Here) -> None:
    clusters.remember(KnownCluster("orders", "secateur://127.0.0.1:1", "", None, "127.0.0.1:6379"))
    refused = here("start", "--name", "orders", "--runtime", "embedded")
    assert refused.exit_code == 1
    assert instructions(refused.stderr) == {
        "stop": ["stop", "--name", "orders"],
        "start": ["start", "--name", "orders-2"],
    }


def test_a_terminal_is_asked_which_cluster_is_meant(both: Here, served: dict[str, Cluster]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "secateur.cli", "sql", "-c", "SHOW TABLES", "--format", "csv"]
    with subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE) as process:
        os.close(theirs)
        said = b""
        for asked, answer in enumerate((b"nope\n", b"ops\n"), 1):
            while said.count(b"meant: ") < asked:
                assert select.select([ours], [], [], 60)[0], said
                said += os.read(ours, 4096)
            os.write(ours, answer)
        rows, _ = process.communicate(timeout=60)
    os.close(ours)
    assert (process.returncode, rows) == (0, b"name\nonly_ops\n")
    assert f"default ({served['default'].address}), ops ({served['ops'].address})".encode() in said


def test_a_cluster_comes_back_with_the_address_and_the_token_that_it_had(here: Here, tmp_path: Path) -> None:
    directory = str(tmp_path / "data")

    def started(name: str) -> tuple[str, str]:
        words = ["--name", name, "--data-directory", directory, "--runtime", "embedded", "--members", "1", "--json"]
        done = here("start", *words)
        assert done.exit_code == 0, done.output
        assert here("stop", "--name", name).exit_code == 0
        return json.loads(done.stdout)["address"], json.loads(done.stdout)["token"]

    assert started("before") == started("after")
    assert (tmp_path / "data" / "ADDRESS").stat().st_mode & 0o077 == 0, "it has the token"


def test_what_is_said_stands_above_what_was_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        keep(KnownCluster("a", f"secateur://127.0.0.1:{port}", "kept"), str(tmp_path))
        left_out: dict[str, Any] = {"data_directory": str(tmp_path), "host": None, "port": None, "token": None}
        assert with_kept(left_out) == {**left_out, "port": 0, "token": "kept"}
        assert f"port {port}, which it had the last time, is taken" in capsys.readouterr().err
    assert with_kept(left_out) == {**left_out, "port": port, "token": "kept"}
    assert with_kept({**left_out, "port": 0, "token": "x"}) == {**left_out, "port": 0, "token": "x"}
    assert with_kept({**left_out, "data_directory": None}) == {**left_out, "data_directory": None, "port": 0}
