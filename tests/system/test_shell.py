"""The shell of ``secateur sql``: typed into a real terminal, and its completion."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import secateur
from secateur.cli import OutputFormat, extent_text
from secateur.cli.shell import Shell, SqlCompleter
from secateur.cluster import Cluster

MANY = 100_000
CHILD = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it
from secateur.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(
            'CREATE TABLE orders (customer_id VARCHAR, order_id BIGINT, amount DECIMAL(10, 2), "Ordered At" DATE,'
            " PRIMARY KEY (customer_id, order_id)) PARTITION BY HASH (customer_id) PARTITIONS 8"
        )
        conn.execute("INSERT INTO orders (customer_id, order_id, amount) VALUES ('C1', 1, 3.5), ('C2', 2, NULL)")
        conn.execute("CREATE TABLE many (k BIGINT PRIMARY KEY, v VARCHAR)")
        conn.execute(f"INSERT INTO many SELECT i, 'value ' || i FROM range({MANY}) AS r(i)")
        conn.execute("CREATE VIEW seen AS SELECT * FROM orders")
        yield cluster


class Terminal:
    """A terminal of 100 columns with ``secateur sql`` in it."""

    def __init__(self, cluster: Cluster, home: Path, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {
            **os.environ,
            "SECATEUR_ADDRESS": cluster.address,
            "SECATEUR_TOKEN": cluster.token or "",
            "SECATEUR_HOME": str(home),
            "TERM": "xterm",
            "COLUMNS": "100",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, "sql", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self._said = ""

    def entered(self, line: str, until: str) -> str:
        """What the terminal shows from a line to a text that is expected behind it."""
        self.pressed(f"{line}\r")
        return self.until(until)

    def pressed(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, text: str) -> str:
        """What the terminal shows before a text, for which is waited, without colours; what is behind it comes next."""
        begun_s = time.monotonic()
        while text not in (shown := re.sub(r"\x1b(?:\[[?\d;]*[A-Za-z]|[=>])", "", self._said).replace("\r", "")):
            left_s = 60 - (time.monotonic() - begun_s)
            assert left_s > 0, shown
            assert select.select([self._ours], [], [], left_s)[0], shown
            self._said += os.read(self._ours, 65_536).decode(errors="ignore")
        before, _, self._said = shown.partition(text)
        return before

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(served: Cluster, tmp_path: Path) -> Iterator[Terminal]:
    shell = Terminal(served, tmp_path / "home")
    shell.until("secateur>")
    yield shell
    shell.close()


@pytest.mark.smoke
def test_the_first_rows_of_many_are_there_at_once(terminal: Terminal) -> None:
    drawn_s = []
    for _ in range(3):
        begun_s = time.perf_counter()
        said = terminal.entered("SELECT * FROM many;", " ms (distributed: ")
        elapsed_s = time.perf_counter() - begun_s
        assert said.count("│ value ") == 40
        told = re.search(r"first 40 of 100,000 rows \(\\rows shows more\) in ([\d.]+)$", said)
        assert told is not None, said
        drawn_s.append(elapsed_s - float(told[1]) / 1000)
    assert 0 <= min(drawn_s) < 0.5, drawn_s


def test_a_statement_on_a_terminal_shows_as_many(served: Cluster, tmp_path: Path) -> None:
    terminal = Terminal(served, tmp_path / "home", "-c", "SELECT * FROM many")
    assert terminal.until("first 40 of 100,000 rows (a pipe has all)").count("│ value ") == 40
    terminal.close()


@pytest.mark.parametrize(
    ("times", "said"),
    [(5, "first 40 of 500,000 rows (more)"), (15, "first 40 of more than 1,000,000 rows (more)")],
)
def test_rows_that_come_in_parts_are_counted(served: Cluster, times: int, said: str) -> None:
    with served.connect() as conn, conn.execute(f"SELECT k, v FROM many, range({times})") as cursor:
        assert cursor.rowcount == -1, "it is too small to come in parts"
        assert extent_text(cursor, len(cursor.fetchmany(40)), "more") == said


def test_statements_and_what_they_cost(terminal: Terminal) -> None:
    assert "order_id" in terminal.entered("SELECT * FROM orders\rWHERE customer_id = 'C1';", "1 row in ")
    terminal.until("(local: 1 of 8 partitions, 1 of 2 members)")
    assert "no partition" not in terminal.entered("SELECT 7 AS seven;", "(answered by the client)")
    terminal.entered("SELECT * FROM orders WHERE false;", "(no partition can match: answered by the client)")
    said = terminal.entered("SELECT 'done' AS x; SELECT nope FROM orders; SELECT 3;", "1 of 3 statements were executed")
    assert "UnknownColumnError: column 'nope' does not exist" in said
    assert "there is no command \\nope" in terminal.entered("\\nope", "lists them")
    terminal.entered("\\timing off", "timing is off")
    assert " ms" not in terminal.entered("SELECT 8 AS eight;", "1 row")
    terminal.until("secateur>")
    terminal.pressed("\x04")  # Ctrl-D, which means something else before there is a prompt
    assert terminal.process.wait(60) == 0


def test_commands_of_the_shell(terminal: Terminal, tmp_path: Path) -> None:
    said = terminal.entered("\\dt", "2 rows in ")
    assert "many" in said
    assert "seen" not in said
    assert "seen" in terminal.entered("\\d", "3 rows in ")
    assert "DECIMAL(10,2)" in terminal.entered("\\d orders", "4 rows in ")
    assert "m2" in terminal.entered("\\members", "2 rows in ")
    query = "SELECT * FROM orders WHERE customer_id = 'C1'"
    assert "1 of 8 partitions" in terminal.entered(f"\\explain {query}", "columns:")
    terminal.entered(f"\\analyze {query}", "actual: local on 1 of 2 members")
    terminal.entered("\\rows 3", "secateur>")
    assert terminal.entered("SELECT * FROM many;", "first 3 of 100,000 rows").count("│ value ") == 3
    terminal.entered("\\rows none", "\\rows takes a number")
    terminal.entered("\\x", "a line for each column is on")
    assert "customer_id  C1" in terminal.entered("SELECT * FROM orders ORDER BY ALL;", "2 rows in ")
    terminal.entered("\\x", "a line for each column is off")
    terminal.entered("\\format xml", "\\format is table, csv or json")
    terminal.entered("\\format json", "secateur>")
    terminal.entered("SELECT 5 + 4 AS nine;", '{"nine":9}')
    assert "\\watch [seconds]" in terminal.entered("\\?", "leave, as Ctrl-D does")
    terminal.pressed("\\q\r")
    assert terminal.process.wait(60) == 0


def test_files_of_statements_and_of_rows(terminal: Terminal, tmp_path: Path) -> None:
    statements, rows = tmp_path / "three.sql", tmp_path / "rows.txt"
    statements.write_text("SELECT 'first' || '!' AS x;\n\nSELECT nope\nFROM orders; SELECT 3;")
    said = terminal.entered(f"\\i {statements}", "1 of 3 statements were executed before it")
    assert "first!" in said
    assert "three.sql:3:8: UnknownColumnError" in said.replace("\n", "")
    terminal.entered("\\i no_such_file.sql", "No such file or directory: 'no_such_file.sql'")
    terminal.entered(f"\\o {rows}", "secateur>")
    assert "│ value " not in terminal.entered("SELECT * FROM many;", "100,000 rows in ")
    assert rows.read_text(encoding="utf-8").count("│ value ") == MANY
    terminal.entered("\\o", "secateur>")
    assert "│ value 5 " in terminal.entered("SELECT * FROM many WHERE k = 5;", "1 row in ")


def test_a_statement_is_watched_until_ctrl_c(terminal: Terminal) -> None:
    terminal.entered("\\watch", "there is none yet")
    terminal.entered("SELECT 'seen ' || 7 AS x;", "1 row in ")
    terminal.entered("\\watch soon", "\\watch takes the seconds")
    terminal.entered("\\watch 0.01", "every 0.01 s until Ctrl-C")
    for _ in range(3):
        assert "seen 7" in terminal.until("1 row in ")
    terminal.pressed("\x03")
    terminal.entered("SELECT 'and ' || 8 AS x;", "and 8")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_watching_ends_also_if_an_interrupt_is_dropped(
    served: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)  # Python drops what a finalizer raises

    handled_before = signal.getsignal(signal.SIGINT)  # Spark has a handler
    with served.connect() as conn:
        shell = Shell(conn, OutputFormat.TABLE)
        shell.handle("SELECT 'seen ' || 7 AS x;")
        monkeypatch.setattr("secateur.cli.shell.cost_of", lambda stats: Interrupting() and "")
        shell.handle("\\watch 0")
        assert capsys.readouterr().out.count("seen 7") == 2
        monkeypatch.undo()
        shell.handle("SELECT 'and ' || 8 AS x;")
        assert "and 8" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is handled_before


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("SELECT amo", "amount"),
        ("SELECT orders.cust", "orders.customer_id"),
        ("SELECT * FROM orders o WHERE o.cust", "o.customer_id"),
        ("SELECT * FROM many m JOIN Orders AS o ON m.k = o.order_id AND o.", "o.amount"),
        ("SELECT ordered", '"Ordered At"'),
        ("SELECT * FROM ord", "orders"),
        ("sel", "SELECT"),
        ("SHOW mem", "SHOW MEMBERS"),
        ("\\wa", "\\watch"),
        ("\\i {folder}/thr", "/three.sql"),
    ],
)
def test_names_and_words_are_completed(served: Cluster, tmp_path: Path, typed: str, offered: str) -> None:
    (tmp_path / "three.sql").touch()
    typed = typed.format(folder=tmp_path)
    with served.connect() as conn:
        found = [
            typed[: len(typed) + each.start_position] + each.text
            for each in SqlCompleter(conn, ["watch"]).get_completions(Document(typed), CompleteEvent())
        ]
    assert any(text.endswith(offered) for text in found), found


def test_an_alias_is_of_one_table(served: Cluster) -> None:
    text = "SELECT o. FROM many m, orders o"
    with served.connect() as conn:
        found = SqlCompleter(conn).get_completions(Document(text, len("SELECT o.")), CompleteEvent())
        assert {each.text for each in found} == {"customer_id", "order_id", "amount", '"Ordered At"'}
