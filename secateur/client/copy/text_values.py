"""The texts of a file as values of columns: by SQL that converts them exactly, or not at all.

DuckDB's CAST makes a value of a text, and rounds or cuts it where the type is too coarse: ``1.5`` becomes 2 as an
INTEGER, ``2024-01-02 05:06`` a DATE without its time, ``03/04/20`` a day of the year 3. So each text has to match a
pattern of its type first; one that does not is turned into a text that no CAST takes. A failure is therefore always
one of CAST, which the SQL function TRY catches, and so the row that is to blame can be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import Field, SqlType, TypeKind
from secateur.partitioning.types.held_values import long_interval_sql
from secateur.partitioning.types.sql_text import quoted, text_literal

if TYPE_CHECKING:
    import duckdb


_DAY: Final = r"\s*[0-9]{4,}[-/][0-9]{1,2}[-/][0-9]{1,2}( \(BC\))?"
_OTHER_DAYS: Final = r"|\s*([-+]?inf(inity)?|epoch)\s*"
_DIGITS: Final = {
    **dict.fromkeys((TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ), 6),
    TypeKind.TIMESTAMP_S: 0,
    TypeKind.TIMESTAMP_MS: 3,
    TypeKind.TIMESTAMP_NS: 9,
}
"""The digits behind the seconds, by kind."""
_TIME: Final = {
    kind: rf"[0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{0,{digits}}}0*)?)?" for kind, digits in _DIGITS.items()
}
_UTC: Final = r"(\s*(Z|UTC|[-+]00(:?00)?))?\s*"
_ZONE: Final = r"(\s*(Z|[-+][0-9:]+|[A-Za-z][A-Za-z0-9_/+-]*))?\s*"
_MOMENTS: Final = frozenset(_DIGITS) - {TypeKind.TIME}
_PATTERNS: Final = {
    TypeKind.DATE: rf"{_DAY}([ T]00:00(:00(\.0*)?)?{_UTC})?\s*{_OTHER_DAYS}",
    TypeKind.TIME: rf"\s*{_TIME[TypeKind.TIME]}\s*",
    **{
        kind: rf"{_DAY}([ T]{_TIME[kind]}{_UTC if kind is TypeKind.TIMESTAMP_NS else _ZONE})?\s*{_OTHER_DAYS}"
        for kind in _MOMENTS
    },
}
_NO_VALUE: Final = "~"
"""A prefix that makes a text which no CAST takes, except one to a text."""
_WITH_A_TIME: Final = re.compile(r"%[HIMSTXcf]")
_TIMES: Final = ("", " %H:%M:%S", " %H:%M:%S.%f", " %H:%M", "T%H:%M:%S", "T%H:%M:%S.%f")
_TEXTS: Final = frozenset({TypeKind.VARCHAR, TypeKind.BLOB})
_DAYS: Final = _MOMENTS | {TypeKind.DATE}
DAY_AND_MONTH: Final = r"\s*[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}\b.*"
"""A date that is not ISO 8601, with a time or without."""


def text_form(type_: SqlType) -> SqlType:
    """The type of values whose parts are texts still: VARCHAR, or lists, structs and maps of it.

    The key of a map is a text in any case, as JSON has it. A list may have any length.
    """
    if not type_.parts:
        return SqlType(TypeKind.VARCHAR)
    if type_.kind is TypeKind.MAP:
        return SqlType.map_of(SqlType(TypeKind.VARCHAR), text_form(type_.parts[1]))
    if type_.element is not None:
        return SqlType(TypeKind.LIST, element=text_form(type_.element))
    return SqlType(type_.kind, fields=tuple(Field(field.name, text_form(field.type)) for field in type_.fields))


@dataclass(frozen=True, slots=True)
class TextConversion:
    """Converts the texts of a file to values.

    Attributes:
        exact: Refuse what CAST would round or cut; otherwise all is as CAST has it.
        date_format: How dates are written, also those in front of a time, as strptime has it; None is ISO 8601.
        timestamp_format: How times with a date are written; None is as ``date_format`` says.
    """

    exact: bool = True
    date_format: str | None = None
    timestamp_format: str | None = None

    def of_text(self, text: str, type_: SqlType, cast: str = "CAST", depth: int = 0) -> str:
        """The value of a text, which is SQL of the type VARCHAR."""
        if type_.parts:
            return self.of_parts(f"CAST(nullif({text}, '') AS {text_form(type_)})", type_, depth)
        if type_.kind is TypeKind.VARCHAR:
            return text
        given = text if type_.kind in (TypeKind.BLOB, TypeKind.ENUM) else f"nullif({text}, '')"
        given = self._in_iso(given, type_.kind)
        accepted = self._accepts(given, type_) if self.exact or type_.kind is TypeKind.INTERVAL else None
        if accepted is not None:
            given = f"CASE WHEN {accepted} THEN {given} ELSE '{_NO_VALUE}' || {given} END"
        match type_.kind:
            case TypeKind.TIMESTAMP | TypeKind.TIMESTAMP_S | TypeKind.TIMESTAMP_MS if self.exact:
                # a CAST would drop a zone, which moves the time to UTC; nanoseconds have none but UTC
                moment = f"CAST({cast}({given} AS {TypeKind.TIMESTAMPTZ.value}) AS TIMESTAMP)"
                return moment if type_.kind is TypeKind.TIMESTAMP else f"CAST({moment} AS {type_})"
            case TypeKind.HUGEINT:  # Arrow carries it as such a DECIMAL, and DuckDB's export would wrap others round
                return f"{cast}({given} AS DECIMAL(38,0))"
            case _:
                return f"{cast}({given} AS {type_})"

    def or_null(self, value: str, type_: SqlType, *, in_parts: bool = False) -> str:
        """Convert as :meth:`of_text` or :meth:`of_parts` does, but to NULL where there is no value."""
        if not type_.parts:  # for which TRY would raise and catch an error in each row
            return self.of_text(value, type_, "TRY_CAST")
        return f"TRY({(self.of_parts if in_parts else self.of_text)(value, type_)})"

    def of_parts(self, value: str, type_: SqlType, depth: int = 0) -> str:
        """The value of SQL of the type :func:`text_form`."""
        part = f"x{depth}"

        def each(values: str, converted: str) -> str:
            return f"list_transform({values}, lambda {part}: {converted})"

        match type_.kind:
            case TypeKind.LIST if type_.element is not None:
                return each(value, self.of_parts(part, type_.element, depth + 1))
            case TypeKind.ARRAY if type_.element is not None:
                return f"CAST({each(value, self.of_parts(part, type_.element, depth + 1))} AS {type_})"
            case TypeKind.STRUCT:
                names = [field.name for field in type_.fields]
                fields = [
                    self.of_parts(f"struct_extract({value}, {text_literal(field.name)})", field.type, depth)
                    for field in type_.fields
                ]
                packed = ", ".join(f"{quoted(name)} := {field}" for name, field in zip(names, fields, strict=True))
                return f"CASE WHEN {value} IS NULL THEN NULL ELSE struct_pack({packed}) END"
            case TypeKind.MAP:
                key, item = type_.parts
                keys = each(f"map_keys({value})", self.of_text(part, key, depth=depth + 1))
                items = each(f"map_values({value})", self.of_parts(part, item, depth + 1))
                return f"CASE WHEN {value} IS NULL THEN NULL ELSE map({keys}, {items}) END"
            case _:
                return self.of_text(value, type_)

    def _in_iso(self, text: str, kind: TypeKind) -> str:
        """A date that is written in the format as ISO 8601, so that the pattern of the type judges it as any other."""
        said = self.date_format if kind is TypeKind.DATE else self.timestamp_format or self.date_format
        if said is None or kind not in _DAYS:
            return text
        times = ("",) if _WITH_A_TIME.search(said) else _TIMES
        moment = f"try_strptime({text}, [{', '.join(text_literal(said + time) for time in times)}])"
        # A text that begins with a year is in no other format, so it is ISO; else the format is meant strictly.
        other = f"'{_NO_VALUE}' || {text}" if said.startswith("%Y") else text
        return f"coalesce(CAST({moment} AS VARCHAR), {other})"

    def _accepts(self, text: str, type_: SqlType) -> str | None:
        """The condition that a type holds what a text says, of one that CAST takes; None if CAST does not change it."""
        kind = type_.kind
        if kind in _PATTERNS:
            accepted = f"regexp_full_match({text}, {text_literal(_PATTERNS[kind])}, 'i')"
            return f"{accepted} AND NOT starts_with(ltrim({text}), '24')" if kind is TypeKind.TIME else accepted
        if kind is TypeKind.DECIMAL or type_.is_integer:
            plain = rf"\s*[-+]?[0-9]*(\.[0-9]{{0,{type_.scale}}}0*)?\s*"
            behind_the_point = f"coalesce(length(regexp_extract({text}, '\\.([0-9_]*[1-9])', 1)), 0)"
            exponent = f"coalesce(TRY_CAST(regexp_extract({text}, '[eE]([-+]?[0-9]+)', 1) AS INTEGER), 0)"
            return f"(regexp_full_match({text}, '{plain}') OR {behind_the_point} - {exponent} <= {type_.scale})"
        if type_.is_float:
            return f"(TRY_CAST({text} AS {type_}) NOT IN ('inf', '-inf') OR regexp_matches({text}, 'inf', 'i'))"
        if kind is TypeKind.INTERVAL:
            is_long = long_interval_sql(f"TRY_CAST({text} AS INTERVAL)")
            return f"(NOT regexp_matches({text}, '\\.[0-9]{{6}}0*[1-9]') AND NOT {is_long})"
        return None


def hint(text: str, type_: SqlType) -> str:
    """Advise on a text that is no value of a type, for the end of a message."""
    if type_.kind in _DAYS and re.fullmatch(DAY_AND_MONTH, text, re.DOTALL):
        return (
            ": which part is the day, and which the month, is not guessed; say the date format, such as '%d/%m/%Y' or"
            " '%m/%d/%Y', or write it as 2025-12-31"
        )
    if type_.kind is TypeKind.DECIMAL:
        return f", which holds {type_.precision - type_.scale} digits before and {type_.scale} behind the point"
    if type_.kind in _MOMENTS:
        digits = _DIGITS[type_.kind]
        written = f"2025-12-31 23:59:59.{'123456789'[:digits]}".rstrip(".")
        return f", which has {digits or 'no'} digits behind the seconds: write it as {written}"
    return ""


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
