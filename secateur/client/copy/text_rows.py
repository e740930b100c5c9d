"""Rows of texts of a file, their conversion to the types of columns, and the place of one that does not convert."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from secateur.client.copy.text_values import TextConversion, hint
from secateur.errors import DataError
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.tables.table import Column

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS: Final = 65_536
_SHOWN_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class TextRows:
    """Rows of texts, and the columns that they are for.

    Attributes:
        connection: The database that reads them.
        source: SQL that reads them, in the order of the file; it may be asked several times.
        columns: Their names there, each with the column that it is for.
        conversion: How texts become values.
        place: Gives the place of a value in the file, for messages, by its row from 0 and the position of its column.
        in_parts: Whether lists, structs and maps are such already, of texts.
        hints: Advice about the types that were found for columns.
        lenient: NULL in place of what is no value of its column.
    """

    connection: duckdb.DuckDBPyConnection
    source: str
    columns: tuple[tuple[str, Column], ...]
    conversion: TextConversion
    place: Callable[[int, int], str]
    in_parts: bool = False
    hints: tuple[str, ...] = ()
    lenient: bool = False

    def reader(self) -> pa.RecordBatchReader:
        """The rows, in Arrow types from which those of the columns can be made without loss.

        Its batches raise:
            DataError: A text is no value of its column.
        """
        items = ", ".join(f"{self._value(*named)} AS {quoted(named[1].name)}" for named in self.columns)
        with self._blaming():
            values = self.connection.cursor().sql(f"SELECT {items} FROM {self.source}").to_arrow_reader(_BATCH_ROWS)

        def batches() -> Iterator[pa.RecordBatch]:
            with self._blaming():
                yield from values

        return pa.RecordBatchReader.from_batches(values.schema, batches())

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        """Replace an error of DuckDB, while values are read, by one that names the text that cannot be converted."""
        import duckdb

        try:
            yield
        except (OSError, pa.ArrowException, duckdb.Error) as error:  # its streams raise others
            culprit = self._culprit()
            raise (duckdb.InvalidInputException(str(error)) if culprit is None else culprit) from error

    def place_of_null(self, name: str) -> str | None:
        """The place of the first NULL of a column; None if it has none."""
        for position, (text, column) in enumerate(self.columns):
            if column.name == name:
                found = self._first(f"{self._value(text, column)} IS NULL", text)
                return None if found is None else self.place(found[0], position)
        return None

    def _value(self, text: str, column: Column) -> str:
        if self.lenient:
            return self._or_null(text, column)
        return (self.conversion.of_parts if self.in_parts else self.conversion.of_text)(text, column.type)

    def _or_null(self, text: str, column: Column) -> str:
        return self.conversion.or_null(text, column.type, in_parts=self.in_parts)

    def _culprit(self) -> DataError | None:
        """The error of the first text that is no value of its column."""
        failed = []
        for position, (text, column) in enumerate(self.columns):
            given = text if self.in_parts and column.type.parts else f"nullif({text}, '')"
            found = self._first(f"{given} IS NOT NULL AND {self._or_null(text, column)} IS NULL", text)
            failed += [] if found is None else [(found[0], position, found[1])]
        if not failed:
            return None
        row, position, value = min(failed)
        column = self.columns[position][1]
        shown = value if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]}..."
        advice = self._of_length(value) if column.type.length else hint(value, column.type)
        problem = f"column {column.name}: {shown!r} is no {column.type}{advice}"
        return DataError(
            f"{self.place(row, position)}: {problem}",
            column=column.name,
            type=str(column.type),
            row=row,
        )

    def _of_length(self, value: str) -> str:
        """What a text has where a list of a fixed length is wanted, for the end of a message."""
        row = self.connection.cursor().execute("SELECT len(TRY_CAST(? AS VARCHAR[]))", [value]).fetchone()
        return "" if row is None or row[0] is None else f": it has {row[0]} elements"

    def _first(self, condition: str, text: str) -> tuple[int, str] | None:
        """The first row, from 0, for which a condition holds, and a text of it."""
        numbered = f"(SELECT row_number() OVER () - 1 AS number, {text} FROM {self.source})"
        row = (
            self.connection.cursor()
            .execute(f"SELECT number, CAST({text} AS VARCHAR) FROM {numbered} WHERE {condition} LIMIT 1")
            .fetchone()
        )
        return None if row is None else (int(row[0]), str(row[1]))
