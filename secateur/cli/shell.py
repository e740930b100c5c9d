"""The interactive shell: reads statements, prints rows and what they cost."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

import secateur
from secateur.cli import local_clusters
from secateur.cli.completion import SqlCompleter
from secateur.cli.rendering import OutputFormat, write_rows
from secateur.client.dbapi.stats import QueryStats
from secateur.errors import Error
from secateur.planner.text.statements import is_finished, split_statements

_HELP: Final = """\
Statements end with a semicolon; Enter before it goes on in the next line.
  \\d [table]        tables, or the columns of one
  \\members          members: what they own and hold
  \\explain <query>  how a query is pruned and where it runs; \\analyze runs it, too
  \\timing           show or hide what a statement cost
  \\format <name>    table, csv or json
  \\?                this list
  \\q                leave, as Ctrl-D does; Ctrl-C ends a running statement"""


class Shell:
    """A shell on one connection.

    Args:
        connection: Executes the statements.
        output_format: How rows are printed.
    """

    def __init__(self, connection: secateur.Connection, output_format: OutputFormat) -> None:
        self._connection = connection
        self._format = output_format
        self._is_timed = True
        self._commands: dict[str, Callable[[str], None]] = {
            "d": self._describe,
            "members": lambda _: self._execute("SELECT * FROM secateur.members ORDER BY id"),
            "explain": self._explain,
            "analyze": lambda query: self._execute(f"EXPLAIN ANALYZE {query.rstrip('; ')}"),
            "timing": self._toggle_timing,
            "format": self._set_format,
            "?": lambda _: print(_HELP),  # noqa: T201 - the shell prints
        }

    def run(self) -> None:
        """Read and execute until the user leaves."""
        print(f"secateur {secateur.__version__} at {self._connection.address}; \\? lists the commands")  # noqa: T201
        session: PromptSession[str] = PromptSession(
            history=FileHistory(str(local_clusters.home() / "history")),
            lexer=PygmentsLexer(SqlLexer),
            completer=SqlCompleter(self._connection),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=Condition(lambda: _wants_more(session.default_buffer.text)),
            prompt_continuation="       ... ",
        )
        while True:
            try:
                text = session.prompt("secateur> ").strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if text in ("\\q", "exit", "quit", "exit;", "quit;"):
                return
            if text:
                self.handle(text)

    def handle(self, text: str) -> None:
        """Execute what was entered: a command, or statements. Errors are printed."""
        try:
            if text.startswith("\\"):
                name, _, rest = text[1:].partition(" ")
                command = self._commands.get(name)
                if command is None:
                    print(f"there is no command \\{name}; \\? lists them", file=sys.stderr)  # noqa: T201
                else:
                    command(rest.strip())
                return
            for statement in split_statements(text):
                self._execute(statement)
        except Error as error:
            print(f"{type(error).__name__}: {error.message}", file=sys.stderr)  # noqa: T201
        except KeyboardInterrupt:
            print("cancelled", file=sys.stderr)  # noqa: T201

    def _execute(self, statement: str) -> None:
        begun_s = time.perf_counter()
        with self._connection.execute(statement) as cursor:
            if cursor.description is not None:
                rows = write_rows(cursor, self._format)
                told = f"{rows:,} row{'' if rows == 1 else 's'}"
            else:
                told = f"{cursor.rowcount:,} rows changed" if cursor.rowcount >= 0 else "done"
            if self._is_timed:
                elapsed_ms = 1000 * (time.perf_counter() - begun_s)
                print(f"{told} in {elapsed_ms:.1f} ms{cost_of(cursor.stats)}")  # noqa: T201

    def _describe(self, table: str) -> None:
        if table:
            self._execute(f"DESCRIBE {table.rstrip('; ')}")
        else:
            self._execute("SELECT table_name, table_type, partitioning, rows FROM secateur.tables ORDER BY table_name")

    def _explain(self, query: str) -> None:
        print(self._connection.explain(query.rstrip("; ")))  # noqa: T201

    def _toggle_timing(self, _: str) -> None:
        self._is_timed = not self._is_timed
        print(f"timing is {'on' if self._is_timed else 'off'}")  # noqa: T201

    def _set_format(self, name: str) -> None:
        names = [one.value for one in OutputFormat if one is not OutputFormat.ARROW]
        if name in names:
            self._format = OutputFormat(name)
        else:
            print(f"\\format is {', '.join(names[:-1])} or {names[-1]}", file=sys.stderr)  # noqa: T201


def cost_of(stats: QueryStats | None) -> str:
    """What a statement has touched, for the line below its rows; empty where nothing is known."""
    if stats is None:
        return ""
    if stats.execution == "none":
        return " (no partition can match: no member was asked)"
    return (
        f" ({stats.execution}: {stats.partitions_read:,} of {stats.partitions_total:,} partitions,"
        f" {stats.members_touched} of {stats.members_total} members)"
    )


def _wants_more(text: str) -> bool:
    """Whether Enter goes on in the next line."""
    stripped = text.strip()
    return (
        bool(stripped) and not stripped.startswith("\\") and stripped not in ("exit", "quit") and not is_finished(text)
    )
