"""Completes names of tables and columns, and words of SQL."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

import secateur
from secateur.errors import Error
from secateur.partitioning.types.type_text import field_name

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


class SqlCompleter(Completer):
    """Knows the names of a connection's cluster, and asks for them again after ten seconds.

    Args:
        connection: Answers what tables and columns there are.
        commands: Those of the shell, without their backslash.
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
