"""The interactive shell: reads statements, prints rows and what they cost."""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, NoReturn, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer
from typer import echo

import secateur
from secateur.cli import clusters
from secateur.cli.rendering import ROWS_SHOWN, CommandError, OutputFormat, cost_of, extent_text, message_of, write_rows
from secateur.cli.scripts import Script, run_scripts
from secateur.drawing.quantity import count_text
from secateur.errors import Error
from secateur.partitioning.types.sql_text import field_name
from secateur.planner.text.tokens import is_finished

_RELATIONS: Final = "SELECT table_name, table_type, partitioning, rows FROM secateur.tables"
_TABLES: Final = f"{_RELATIONS} WHERE table_type = 'BASE TABLE' ORDER BY table_name"
_MEMBERS: Final = "SELECT * FROM secateur.members ORDER BY id"
_FORMATS: Final = [one.value for one in OutputFormat if one is not OutputFormat.ARROW]
_WATCHED_S: Final = 2.0
_SHOWN_WHOLE: Final = ("DESCRIBE", "DESC", "EXPLAIN")
"""Nobody wants the first forty lines of a plan."""
_KEPT_S: Final = 10.0
_WORD: Final = re.compile(r"[\w.]+$")
_KEYWORDS: Final = """
    SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT FULL INNER CROSS ON USING UNION ALL EXCEPT
    INTERSECT DISTINCT AS AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END EXISTS WITH RECURSIVE VALUES
    INSERT INTO REPLACE IGNORE UPDATE SET DELETE MERGE MATCHED RETURNING CONFLICT DO NOTHING CREATE TABLE VIEW INDEX
    EXTERNAL DROP ALTER PRIMARY KEY PARTITION HASH RANGE PARTITIONS BACKUPS REPLICATED EVERY INTERVAL EXPLAIN ANALYZE
    DESCRIBE SHOW TABLES MEMBERS JOBS STATEMENTS SUMMARIZE COPY TO BACKUP RESTORE KILL JOB TRUNCATE PIVOT UNPIVOT
    QUALIFY OVER ASC DESC NULLS FIRST LAST CAST
"""


class _Command(NamedTuple):
    """A command of a backslash and a name, to which the rest of the line is passed."""

    run: Callable[[str], None]
    argument: str
    does: str


class Shell:
    """A shell on one connection."""

    def __init__(self, connection: secateur.Connection, output_format: OutputFormat) -> None:
        self._connection = connection
        self._format = output_format
        self._is_timed = True
        self._is_expanded = False
        self._rows_max = ROWS_SHOWN
        self._output: TextIO | None = None
        self._last = ""
        self._commands = {
            "d": _Command(self._describe, "[name]", "tables and views, or the columns of one"),
            "dt": _Command(lambda _: self._execute(_TABLES), "", "tables"),
            "members": _Command(lambda _: self._execute(_MEMBERS), "", "members: what they own and hold"),
            "explain": _Command(self._explain, "<query>", "how a query is pruned and where it runs"),
            "analyze": _Command(
                lambda query: self._execute(f"EXPLAIN ANALYZE {query.rstrip('; ')}"), "<query>", "the same of a run"
            ),
            "watch": _Command(self._watch, "[seconds]", "repeat the last statement until Ctrl-C, every two seconds"),
            "i": _Command(self._include, "<file>", "execute the statements of a file"),
            "o": _Command(self._redirect, "[file]", "write all rows to a file; without one, to the terminal again"),
            "x": _Command(self._expand, "[on|off]", "a line for each column of a row"),
            "rows": _Command(self._limit_rows, "<number>", f"show so many rows of a table, at first {ROWS_SHOWN}"),
            "format": _Command(self._set_format, "<name>", f"{', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}"),
            "timing": _Command(self._time, "[on|off]", "show or hide what a statement cost; drawing does not count"),
            "?": _Command(self._help, "", "this list"),
            "q": _Command(self._quit, "", "leave, as Ctrl-D does; Ctrl-C ends a running statement"),
        }

    def run(self) -> None:
        """Read and execute until the user leaves."""
        echo(f"secateur {secateur.__version__} at {self._connection.address}; \\? lists the commands")
        session: PromptSession[str] = PromptSession(
            history=FileHistory(str(clusters.home() / "history")),
            lexer=PygmentsLexer(SqlLexer),
            completer=SqlCompleter(self._connection, list(self._commands)),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=Condition(lambda: _wants_more(session.default_buffer.text)),
            prompt_continuation="       ... ",
        )
        try:
            while True:
                with suppress(KeyboardInterrupt):
                    self.handle(session.prompt("secateur> ").strip())
        except EOFError:
            self._redirect("")

    def handle(self, text: str) -> None:
        """Execute what was entered: a command, or statements. Errors are printed.

        Raises:
            EOFError: The user wants to leave.
        """
        try:
            if text.rstrip(";") in ("exit", "quit"):
                self._quit("")
            elif text.startswith("\\"):
                name, _, rest = text[1:].partition(" ")
                if name not in self._commands:
                    raise CommandError(f"there is no command \\{name}; \\? lists them")
                self._commands[name].run(rest.strip())
            else:
                run_scripts([Script(text)], self._execute)
        except (Error, CommandError, OSError, UnicodeError) as error:
            echo(message_of(error), err=True)
        except KeyboardInterrupt:
            echo("cancelled", err=True)

    def _execute(self, statement: str) -> None:
        self._last = statement
        is_whole = statement.split(maxsplit=1)[0].upper() in _SHOWN_WHOLE
        begun_s = time.perf_counter()
        with self._connection.execute(statement) as cursor:
            elapsed_s = time.perf_counter() - begun_s
            if cursor.description is not None:
                written = write_rows(
                    cursor,
                    self._format,
                    into=self._output,
                    rows_max=None if is_whole else self._rows_max,
                    is_expanded=self._is_expanded,
                )
                begun_s = time.perf_counter()
                told = extent_text(cursor, written, "\\rows shows more")
                elapsed_s += time.perf_counter() - begun_s
            else:
                told = f"{count_text(cursor.rowcount, 'row')} changed" if cursor.rowcount >= 0 else "done"
            cost = f" in {1000 * elapsed_s:.1f} ms{cost_of(cursor.stats)}" if self._is_timed else ""
            echo(f"{told}{cost}")

    def _describe(self, name: str) -> None:
        self._execute(f"DESCRIBE {name.rstrip('; ')}" if name else f"{_RELATIONS} ORDER BY table_name")

    def _explain(self, query: str) -> None:
        echo(self._connection.explain(query.rstrip("; ")))

    def _watch(self, seconds: str) -> None:
        if not self._last:
            raise CommandError("\\watch repeats the last statement, and there is none yet")
        pause_s = _number(seconds, "\\watch takes the seconds between two executions") if seconds else _WATCHED_S
        with _interruptible() as is_interrupted:
            while not is_interrupted():
                echo(f"{time.strftime('%H:%M:%S')}, every {pause_s:g} s until Ctrl-C")
                self._execute(self._last)
                time.sleep(pause_s)

    def _include(self, name: str) -> None:
        text = Path(name).expanduser().read_text(encoding="utf-8-sig")
        run_scripts([Script(text, name)], self._execute)

    def _redirect(self, name: str) -> None:
        opened = Path(name).expanduser().open("w", encoding="utf-8", buffering=1) if name else None
        if self._output is not None:
            self._output.close()
        self._output = opened

    def _expand(self, word: str) -> None:
        self._is_expanded = _switched(self._is_expanded, word)
        echo(f"a line for each column is {'on' if self._is_expanded else 'off'}")

    def _time(self, word: str) -> None:
        self._is_timed = _switched(self._is_timed, word)
        echo(f"timing is {'on' if self._is_timed else 'off'}")

    def _limit_rows(self, number: str) -> None:
        self._rows_max = max(1, int(_number(number, "\\rows takes a number")))

    def _set_format(self, name: str) -> None:
        if name not in _FORMATS:
            raise CommandError(f"\\format is {self._commands['format'].does}")
        self._format = OutputFormat(name)

    def _help(self, _: str) -> None:
        echo("Statements end with a semicolon; Enter before it goes on in the next line.")
        for name, command in self._commands.items():
            echo(f"  \\{f'{name} {command.argument}':<17} {command.does}")

    def _quit(self, _: str) -> NoReturn:
        raise EOFError


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """A block that Ctrl-C ends, and what says whether it was pressed.

    Python drops a KeyboardInterrupt that it raises within a finalizer or another callback of the interpreter, and a
    loop of short statements spends its time in such places often enough: what asks does not miss it.
    """
    is_pressed = False

    def press(number: int, frame: FrameType | None) -> NoReturn:
        nonlocal is_pressed
        is_pressed = True
        raise KeyboardInterrupt

    handled_before = signal.signal(signal.SIGINT, press)
    try:
        with suppress(KeyboardInterrupt):
            yield lambda: is_pressed
    finally:
        signal.signal(signal.SIGINT, handled_before)


def _switched(is_on: bool, word: str) -> bool:
    return {"on": True, "off": False}.get(word, not is_on)


def _number(text: str, otherwise: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise CommandError(otherwise)
    return number


def _wants_more(text: str) -> bool:
    """Whether Enter goes on in the next line."""
    stripped = text.strip()
    return (
        bool(stripped) and not stripped.startswith("\\") and stripped not in ("exit", "quit") and not is_finished(text)
    )


class SqlCompleter(Completer):
    """Knows the names of a connection's cluster, and asks for them again after ten seconds.

    ``commands`` are those of the shell, without their backslash.
    """

    def __init__(self, connection: secateur.Connection, commands: Sequence[str] = ()) -> None:
        self._connection = connection
        self._commands = commands
        self._columns: dict[str, list[str]] = {}
        self._asked_s = float("-inf")

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Complete the word before the cursor.

        After ``table.`` or ``alias.``, with the columns of that table; otherwise with tables, then
        columns of the tables that the text names (all columns where it names none), then keywords.
        """
        text = document.text_before_cursor
        if text.startswith("\\") and " " not in text:
            yield from _matching(text[1:], self._commands)
            return
        if text.startswith(("\\i ", "\\o ")):
            path = Document(text[3:].lstrip())
            yield from PathCompleter(expanduser=True).get_completions(path, complete_event)
            return
        found = _WORD.search(text)
        word = found[0] if found else ""
        columns = self._known()
        owner, dot, start = word.rpartition(".")
        if dot and (owned := columns.get(_table_of(owner.casefold(), document.text.casefold(), columns))) is not None:
            yield from _matching(start, owned)
            return
        named = [table for table in columns if re.search(rf"\b{re.escape(table)}\b", document.text.casefold())]
        names = dict.fromkeys(column for table in named or columns for column in columns[table])
        yield from _matching(word, [*columns, *names, *_KEYWORDS.split()])

    def _known(self) -> dict[str, list[str]]:
        """The columns of each table, by its name in lower case; what was known, where the cluster does not answer."""
        if time.monotonic() - self._asked_s > _KEPT_S:
            self._asked_s = time.monotonic()
            found: dict[str, list[str]] = {}
            try:
                rows = self._connection.execute(
                    "SELECT table_name, column_name FROM secateur.columns ORDER BY table_name, position"
                ).fetchall()
            except Error:
                return self._columns
            for table, column in rows:
                found.setdefault(table.casefold(), []).append(field_name(column))
            self._columns = found
        return self._columns


def _table_of(owner: str, text: str, tables: Collection[str]) -> str:
    """The table that has a name or alias in a text, all in lower case."""
    named = re.findall(rf'(\w+)"?\s+(?:as\s+)?{re.escape(owner)}\b', text)
    return next((table for table in named if table in tables), owner)


def _matching(word: str, names: Iterable[str]) -> Iterator[Completion]:
    start = word.casefold()
    for name in names:
        if name.strip('"').casefold().startswith(start) and name.casefold() != start:
            yield Completion(name, start_position=-len(word))
