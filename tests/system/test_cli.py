"""The command ``secateur``: run as a user does, on real clusters."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

import secateur
from secateur.cli import OutputFormat, clusters, write_rows
from secateur.cli.app import app
from secateur.cluster import Cluster
from secateur.errors import ProgrammingError

CSV = "customer_id,order_id,amount,day\nC1,1,3.5,2026-01-01\nC2,2,4.25,2026-01-02\nC2,3,,2026-01-03\n"

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def served() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE orders (customer_id VARCHAR, order_id BIGINT, amount DECIMAL(10, 2), PRIMARY KEY"
            " (customer_id, order_id)) PARTITION BY HASH (customer_id) PARTITIONS 8"
        )
        conn.execute("INSERT INTO orders VALUES ('C1', 1, 3.5), ('C2', 2, 4.25), ('C2', 3, NULL)")
        yield cluster


@pytest.fixture
def run(served: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("SECATEUR_ADDRESS", served.address)
    monkeypatch.setenv("SECATEUR_TOKEN", served.token or "")
    monkeypatch.setenv("SECATEUR_HOME", str(tmp_path / "home"))

    def running(*words: str, exit_code: int = 0, given: str | None = None) -> Result:
        result = CliRunner().invoke(app, list(words), input=given)
        assert result.exit_code == exit_code, (result.output, result.exception)
        return result

    return running


def test_rows_as_a_table(run: Run) -> None:
    lines = run("sql", "-c", "SELECT * FROM orders WHERE customer_id = 'C2' ORDER BY order_id").stdout.splitlines()
    assert [line.replace(" ", "") for line in lines if "C2" in line] == ["│C2│2│4.25│", "│C2│3│NULL│"]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (200, ["customer_id", "│        2 │", "│        3 │"]),
        (24, ["row 1", "customer_id  C2", "order_id     2", "amount       4.25", "row 2", "amount       NULL"]),
    ],
)
def test_rows_that_are_too_wide_for_a_terminal_have_a_line_for_each_column(
    served: Cluster, monkeypatch: pytest.MonkeyPatch, columns: int, shown: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, served.connect() as conn:
        cursor = conn.execute("SELECT * FROM orders WHERE customer_id = 'C2' ORDER BY order_id")
        write_rows(cursor, OutputFormat.TABLE, into=terminal)
        terminal.flush()
    read = b""
    with contextlib.suppress(OSError):  # at the end of what was written
        while part := os.read(ours, 65_536):
            read += part
    os.close(ours)
    said = re.sub(r"\x1b\[[\d;]*m", "", read.decode())
    places = [said.index(text) for text in shown]
    assert places == sorted(places)
    assert ("┃" in said) == (columns == 200)


@pytest.mark.smoke
def test_every_command_tells_what_it_did_as_json(run: Run, tmp_path: Path, served: Cluster) -> None:
    (tmp_path / "more.csv").write_text("customer_id,order_id,amount\nC9,9,1.5\n")

    def told(*words: str) -> object:
        return json.loads(run(*words, "--json").stdout)

    assert told("load", str(tmp_path / "more.csv"), "--table", "orders") == {"table": "orders", "rows": 1}
    assert told("sql", "-c", "SELECT order_id FROM orders WHERE customer_id = 'C9'") == [{"order_id": 9}]
    file = str(tmp_path / "c9.csv")
    query = "SELECT * FROM orders WHERE customer_id = 'C9'"
    assert told("export", file, "--query", query) == {"file": file, "rows": 1}
    run("sql", "-c", "DELETE FROM orders WHERE customer_id = 'C9'")
    folder = str(tmp_path / "backup")
    assert told("backup", folder, "--table", "orders") == {"folder": folder, "rows": 3}
    assert told("restore", folder, "--replace") == {"folder": folder, "rows": 3}
    token_id = json.loads(run("token", "create", "--role", "read", "--json").stdout)["id"]
    assert told("token", "revoke", token_id) == {"revoked": token_id}
    with served.connect() as conn:
        job = (
            secateur.Pipeline()
            .read_table("orders")
            .write_to(secateur.connectors.collect())
            .submit(conn, secateur.JobConfig(name="told"))
        )
        job.result()
    assert told("kill", "told") == {"ended": "told"}


def test_rows_as_csv_and_json(run: Run) -> None:
    query = "FROM orders ORDER BY order_id"
    assert run("sql", "-c", query, "--format", "csv").stdout == (
        "customer_id,order_id,amount\nC1,1,3.50\nC2,2,4.25\nC2,3,\n"
    )
    assert json.loads(run("sql", "-c", query, "--format", "json").stdout)[1:] == [
        {"customer_id": "C2", "order_id": 2, "amount": "4.25"},
        {"customer_id": "C2", "order_id": 3, "amount": None},
    ]
    assert json.loads(run("sql", "-c", "FROM orders WHERE order_id = 9", "--format", "json").stdout) == []


def test_columns_of_one_name_stay_as_many(run: Run) -> None:
    words = ["sql", "-c", "SELECT 1 AS id, 'left' AS v, 2 AS ID, 'right' AS v", "--format"]
    assert json.loads(run(*words, "json").stdout) == [{"id": 1, "v": "left", "ID_1": 2, "v_1": "right"}]
    assert run(*words, "csv").stdout == "id,v,ID_1,v_1\n1,left,2,right\n"


def test_rows_as_an_arrow_stream(run: Run) -> None:
    found = pa.ipc.open_stream(run("sql", "-c", "FROM orders", "--format", "arrow").stdout_bytes).read_all()
    assert sorted(found.column("order_id").to_pylist()) == [1, 2, 3]


def test_values_that_json_has_not(run: Run) -> None:
    query = (
        "SELECT 9007199254740993::HUGEINT AS big, 'NaN'::DOUBLE AS n, 'ab'::BLOB AS b, DATE '2026-01-02' AS d,"
        " [1, NULL] AS l, 1.50 AS x, TRUE AS t, MAP {1: 'a'} AS m"
    )
    (found,) = json.loads(run("sql", "-c", query, "--format", "json").stdout)
    assert found == {
        "big": "9007199254740993",
        "n": "NaN",
        "b": "YWI=",
        "d": "2026-01-02",
        "l": [1, None],
        "x": "1.50",
        "t": True,
        "m": [[1, "a"]],
    }
    assert run("sql", "-c", "SELECT [1, NULL] AS l, 'ab'::BLOB AS b", "--format", "csv").stdout == (
        'l,b\n"[1, NULL]",ab\n'
    )


def test_several_statements_and_standard_input(run: Run) -> None:
    script = "-- a; comment\nSELECT 'a;b' AS x;\n;SELECT 2 AS y"
    assert run("sql", "--format", "csv", given=script).stdout == "x\na;b\ny\n2\n"
    assert run("sql", "-f", "-", "--format", "csv", given=script).stdout == "x\na;b\ny\n2\n"
    assert run("sql", given="  \n").stdout == ""


def test_a_file_may_begin_with_a_byte_order_mark(run: Run, tmp_path: Path) -> None:
    (tmp_path / "marked.sql").write_text("SELECT 'ä' AS x; SELECT 2 AS y", encoding="utf-8-sig")
    assert run("sql", "-f", str(tmp_path / "marked.sql"), "--format", "csv").stdout == "x\nä\ny\n2\n"


def test_a_failed_statement_is_a_message_and_exit_code_1(run: Run) -> None:
    result = run("sql", "-c", "SELECT 1 AS x; SELECT nope FROM orders; SELECT 2", "--format", "csv", exit_code=1)
    assert result.stdout == "x\n1\n"
    assert result.stderr.startswith("UnknownColumnError: ")
    assert "(line 1, column 23)" in result.stderr
    assert result.stderr.endswith("\n1 of 3 statements were executed before it\n")
    assert "Traceback" not in result.output
    assert "executed" not in run("sql", "-c", "SELECT nope FROM orders", exit_code=1).stderr


@pytest.mark.parametrize(
    ("failing", "place", "said"),
    [
        ("SELECT\n  nope\nFROM orders", "9:3", "UnknownColumnError: column 'nope' does not exist"),
        ("/* a */ SELECT nope FROM orders", "8:16", "UnknownColumnError: column 'nope' does not exist"),
        ("-- it has no place\nINSERT INTO orders VALUES ('C1', 1, 0)", "9:1", "DuplicateKeyError: "),
    ],
    ids=["a line of its own", "the first line", "without a place"],
)
def test_an_error_in_a_file_says_where_and_what_was_done(
    run: Run, tmp_path: Path, failing: str, place: str, said: str
) -> None:
    lines = ["-- twelve; statements", *(f"SELECT {number} AS x;" for number in range(12))]
    lines[7] = f"{failing};"
    file = tmp_path / "twelve.sql"
    file.write_text("\n".join(lines))
    result = run("sql", "-f", str(file), "--format", "csv", exit_code=1)
    assert result.stdout == "".join(f"x\n{number}\n" for number in range(6))
    assert result.stderr.startswith(f"{file}:{place}: {said}")
    assert "(line " not in result.stderr
    assert result.stderr.endswith("\n6 of 12 statements were executed before it\n")


def test_a_text_that_does_not_end_is_not_begun(run: Run) -> None:
    result = run("sql", given="SELECT 1 AS x;\nSELECT 'open", exit_code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("<stdin>:2:8: SqlSyntaxError: ")
    assert result.stderr.endswith("\nno statement was executed\n")


def test_a_pipe_has_all_rows_of_a_table(run: Run) -> None:
    query = "SELECT i, CASE i WHEN 12000 THEN 'much wider' END AS t FROM range(25000) AS r(i) ORDER BY i"
    lines = run("sql", "-c", query).stdout.splitlines()
    rows = [line.strip("│").split("│") for line in lines if line.startswith("│")]
    assert [int(row[0]) for row in rows] == list(range(25_000))
    assert [row[1].strip() for row in rows[11_999:12_001]] == ["NULL", "much wider"]


@pytest.mark.parametrize(
    "words",
    [
        ["sql", "--format", "yaml"],
        ["nope"],
        ["load", "nofile.csv", "--table", "t"],
        ["export", "x.csv"],
        ["sql", "localhost:5000", "-c", "SELECT 1"],
        ["status", "secateur://localhost"],
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, words: list[str]) -> None:
    assert "Usage:" in run(*words, exit_code=2).stderr


def test_files_become_a_table_and_a_table_becomes_files(run: Run, served: Cluster, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text(CSV)
    created = [
        "--create",
        "--primary-key",
        "customer_id, order_id",
        "--partition-by",
        "HASH (customer_id) PARTITIONS 4",
    ]
    told = run("load", str(tmp_path / "o.csv"), "--table", "loaded", *created, "--backups", "0")
    assert "3 rows loaded into loaded" in told.stderr
    with served.connect() as conn:
        assert conn.table("loaded").partitions == 4
        assert conn.table("loaded").load(tmp_path / "o.csv", mode="upsert") == 3
        with pytest.raises(ProgrammingError, match="there is no file"):
            conn.table("loaded").load("nothing.csv")
        assert conn.execute("SELECT typeof(day), amount FROM loaded WHERE order_id = 2").fetchall() == [("DATE", 4.25)]
    for name in ("copy.parquet", "copy.csv", "copy.json"):
        run("export", str(tmp_path / name), "--table", "loaded")
        assert "3 rows" in run("load", str(tmp_path / name), "--table", "loaded", "--mode", "upsert").stderr
    with pa.OSFile(str(tmp_path / "copy.arrow"), "wb") as file:
        table = pyarrow.parquet.read_table(tmp_path / "copy.parquet")
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert "3 rows" in run("load", str(tmp_path / "copy.arrow"), "--table", "loaded", "--mode", "overwrite").stderr
    (tmp_path / "stream.arrow").write_bytes(run("sql", "-c", "FROM loaded", "--format", "arrow").stdout_bytes)
    assert "3 rows" in run("load", str(tmp_path / "stream.arrow"), "--table", "loaded", "--mode", "upsert").stderr
    (tmp_path / "bad.arrow").write_bytes(b"ARROW1 and nothing else")
    assert (
        "cannot be read as arrow" in run("load", str(tmp_path / "bad.arrow"), "--table", "loaded", exit_code=1).stderr
    )
    refused = run("load", str(tmp_path / "o.csv"), "--table", "loaded", exit_code=1).stderr
    assert "DuplicateKeyError: loaded: key (" in refused
    assert "--mode upsert" in refused
    run("export", str(tmp_path / "some.csv"), "--query", "SELECT order_id FROM loaded WHERE order_id = 3;")
    assert (tmp_path / "some.csv").read_text() == "order_id\n3\n"


def test_a_table_of_files_without_a_key_has_each_row(run: Run, served: Cluster, tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("a,b\n1,2\n1,2\n")
    words = ["load", str(tmp_path / "twice.csv"), "--table", "without_key"]
    assert "PRIMARY KEY" not in run(*words, "--create", "--dry-run").stdout
    run(*words, "--create", "--partition-by", "HASH (a) PARTITIONS 3")
    assert "2 rows loaded" in run(*words).stderr
    with served.connect() as conn:
        assert conn.execute("SELECT a, b, count(*) FROM without_key GROUP BY ALL").fetchall() == [(1, 2, 4)]
        conn.execute("DROP TABLE without_key")


def test_a_load_that_fails_leaves_no_table_behind(run: Run, tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("a,b\n1,2\n1,3\n")
    words = ["load", str(tmp_path / "twice.csv"), "--table", "twice", "--create", "--primary-key"]
    assert "more than once" in run(*words, "a", exit_code=1).stderr
    assert "there is no column 'c'; there is a, b" in run(*words, "c", exit_code=1).stderr
    assert "UnknownTableError" in run("sql", "-c", "FROM twice", exit_code=1).stderr


def commands(group: Any, *before: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        beneath = getattr(command, "commands", None)
        if beneath:
            yield from commands(command, *before, name)
        if beneath is None or command.invoke_without_command:
            yield (*before, name)


@pytest.mark.parametrize("words", [pytest.param(words, id=" ".join(words)) for words in commands(get_command(app))])
def test_the_help_of_each_command_has_an_example_that_the_command_takes(words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200"})
    assert told.exit_code == 0
    _, said, examples = told.stdout.partition("For example:")
    assert said
    first = next(line.split() for line in examples.splitlines() if line.strip())
    assert first[: 1 + len(words)] == ["secateur", *words]
    command: Any = get_command(app)
    for word in words:
        command = command.commands[word]
    options = {name for option in command.params for name in option.opts}
    assert {word for word in first if word.startswith("--")} <= options


def test_what_is_listed_is_also_json(run: Run, served: Cluster) -> None:
    told = json.loads(run("status", "--json").stdout)
    assert [member["id"] for member in told["members"]] == [member.id for member in served.members()]
    assert next(table for table in told["tables"] if table["table_name"] == "orders")["rows"] == 3
    assert "orders" in run("status").stdout
    with served.connect() as conn:
        jobs = [job for (job,) in conn.execute("SELECT id FROM secateur.jobs").fetchall()]  # of other tests
    assert sorted(job["id"] for job in json.loads(run("jobs", "--json").stdout)) == sorted(jobs)
    assert (run("jobs").stdout == "there are no jobs\n") is (not jobs)
    findings = {finding["what"]: finding for finding in json.loads(run("doctor", "--json").stdout)}
    assert findings["pyarrow"]["found"] == pa.__version__
    assert findings["loopback"]["state"] == "ok"


def test_a_backup_comes_back(run: Run, served: Cluster, tmp_path: Path) -> None:
    folder = str(tmp_path / "backup")
    assert "3 rows written" in run("backup", folder, "--table", "orders").stderr
    assert run("restore", folder, exit_code=1).stderr.startswith("TableExistsError")
    assert "3 rows restored" in run("restore", folder, "--replace").stderr
    with served.connect() as conn:
        assert conn.execute("SELECT count(*) FROM orders").fetchall() == [(3,)]


def test_kill_names_what_it_does_not_find(run: Run) -> None:
    assert "no job has the id or name" in run("kill", "it's", exit_code=1).stderr
    assert "no statement 'm1:999'" in run("kill", "m1:999", exit_code=1).stderr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs commands on a machine where nothing was started."""
    for name in ("SECATEUR_ADDRESS", "SECATEUR_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(clusters.HOME_VARIABLE, str(tmp_path / "home"))
    return lambda *words: CliRunner().invoke(app, list(words))


def test_a_cluster_outlives_the_command_that_starts_it(here: Callable[..., Result], tmp_path: Path) -> None:
    started = here("start", "--runtime", "embedded", "--members", "1", "--json")
    assert started.exit_code == 0, started.stderr
    cluster = json.loads(started.stdout)
    try:
        assert here("sql", "-c", "SELECT 6 * 7 AS x", "--format", "csv").stdout == "x\n42\n"
        again = here("start", "--runtime", "embedded")
        assert (again.exit_code, again.stdout) == (1, "")
        assert "a cluster 'default' runs here already" in again.stderr
        (file,) = (tmp_path / "home" / "clusters").glob("*.json")
        assert file.stat().st_mode & 0o077 == 0, "it has the token"
        assert cluster["token"] not in Path(f"/proc/{cluster['pid']}/cmdline").read_text()
    finally:
        ended = here("stop", "--json")
    assert ended.exit_code == 0, ended.stderr
    assert json.loads(ended.stdout) == {"ended": "default"}
    assert here("stop").exit_code == 1
    assert "none was started here" in here("sql", "-c", "SELECT 1").stderr


def test_the_commands_of_the_documents_work_in_their_order(
    here: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text(CSV)
    document = (Path(secateur.__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    block = document.partition("```console\n")[2].partition("```")[0]
    lines = [line.removeprefix("$ secateur ") for line in block.splitlines()]
    assert lines[0].startswith("start ")
    printed = []
    for line in lines:
        words = shlex.split(line)
        done = here(*words, "--runtime", "embedded") if words[0] == "start" else here(*words)
        assert done.exit_code == 0, (line, done.output)
        printed.append(done.stdout)
    assert "4.25" in printed[2]
    assert "1 of 16" in printed[3]


def test_a_process_that_was_killed_leaves_no_cluster(here: Callable[..., Result]) -> None:
    known = clusters.KnownCluster("default", "secateur://127.0.0.1:1", "", os.getpid())
    with clusters.locked("default"):
        clusters.remember(known)
        assert clusters.running() == [known]
    assert clusters.running() == []
    assert "none was started here" in here("stop").stderr


def test_the_commands_of_the_first_page_work_in_their_order(
    here: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text(CSV)
    page = (Path(secateur.__file__).parents[1] / "docs" / "index.md").read_text(encoding="utf-8")
    install, *lines = page.partition("```console\n")[2].partition("```")[0].splitlines()
    assert install == '$ pip install "secateur[ray,cli]"'
    assert len(lines) <= 5, "at most six commands with the installation"
    printed = {}
    for line in lines:
        words = shlex.split(line.removeprefix("$ secateur "))
        done = here(*words, "--runtime", "embedded") if words[0] == "start" else here(*words)
        assert done.exit_code == 0, (line, done.output)
        printed[words[-1]] = done.stdout
    rows, plan = (text for command, text in printed.items() if command.startswith(("SELECT", "EXPLAIN")))
    assert "4.25" in rows
    said = page.partition("```text\n")[2].partition("```")[0].splitlines()
    assert all(part in plan for part in said if part != "..."), plan


def test_what_is_wrong_with_a_start_is_said_by_it(here: Callable[..., Result]) -> None:
    failed = here("start", "--runtime", "embedded", "--members", "5000")
    assert failed.exit_code == 1
    assert "a cluster has 1 to 1024 members" in failed.stderr
    assert here("start", "--runtime", "other").exit_code == 2
    assert here("start", "--start-timeout", "0").exit_code == 2
    assert here("start", "--memory-limit", "much").exit_code == 2
    assert here("start", "--name", "../x").exit_code == 1


def test_the_demo_shows_what_pruning_does(here: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # without Ray
    done = here("demo", "--json")
    assert done.exit_code == 0, done.output
    first, *_ = questions = json.loads(done.stdout)
    assert len(questions) == 4
    assert [first[name]["stats"]["partitions_read"] for name in ("pruned", "unpruned")] == [1, 24]


def test_a_missing_library_is_named_with_what_installs_it() -> None:
    words = [
        sys.executable,
        "-c",
        "import sys; sys.modules['typer'] = None; from secateur.cli.main import main; main()",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'secateur: the command needs typer: pip install "secateur[cli]"\n'
