"""CSV and JSON files as rows of texts for the columns that they have."""

from __future__ import annotations

import codecs
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from secateur.client.copy.asked_file import AskedFile, pattern_of
from secateur.client.copy.csv_texts import csv_form
from secateur.client.copy.file_database import FileDatabase
from secateur.client.copy.inferred_types import Inferred, MayBe, inferred_types
from secateur.client.copy.json_texts import JsonObjects, place_in_json
from secateur.client.copy.text_rows import TextRows
from secateur.client.copy.text_values import TextConversion
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import SqlType, TypeKind, parse_type
from secateur.partitioning.types.result_type import ResultType, parse_result_type

if TYPE_CHECKING:
    import duckdb

_TEXT: Final = SqlType(TypeKind.VARCHAR)


def csv_rows(database: FileDatabase, asked: AskedFile) -> TextRows:
    """The rows of a CSV file.

    Raises:
        ProgrammingError: The names of its columns are not known.
        UnknownColumnError: As :meth:`AskedFile.named`.
        DataError: Its first line does not fit.
    """
    path, options = asked.path, asked.options
    form = csv_form(_in_utf_8(asked, database.folder), asked)
    names = [name.strip() for _, name in form.first] if form.header else asked.in_order
    line = f":{form.blank + 1}"
    if not names:
        raise ProgrammingError(
            f"{path}{line}: the first line has no names of columns: list them (columns, --columns), or say that it has"
            " (header=True, --header)"
        )
    if len(names) != len(form.first):
        raise DataError(
            f"{path}{line}:1: the first line has {len(form.first)} values, and there are {len(names)} columns:"
            f" {', '.join(names)}"
        )
    named = asked.named(names, lambda position: f"{line}:{form.first[position][0] + 1}")
    texts = [f"c{number}" for number in range(len(names))]
    conversion = TextConversion(date_format=options.date_format)
    unknown = [text for text, (_, type_) in zip(texts, named, strict=True) if type_ is None]
    types = iter(inferred_types(database.connection, form.source, [(text, MayBe.ANY) for text in unknown], conversion))
    columns, hints = [], []
    for name, type_ in named:
        found = Inferred(type_, is_other_date=False) if type_ is not None else next(types)
        columns.append(Column(name, found.type))
        hints += _hints(name, found)
    return TextRows(
        database.connection,
        form.source,
        tuple(zip(texts, columns, strict=True)),
        conversion,
        lambda row, position: f"{path}:{form.place(row, position)}",
        hints=tuple(hints),
    )


def json_rows(database: FileDatabase, asked: AskedFile) -> TextRows:
    """The rows of a JSON file, of objects that may lack some of the columns.

    Raises:
        UnknownColumnError: As :meth:`AskedFile.named`.
        DataError: It is not of such objects.
    """
    import duckdb

    connection, utf_8 = database.connection, _in_utf_8(asked, database.folder)

    def place(number: int, name: str | None) -> str:
        return place_in_json(utf_8, number, name)

    try:
        connection.execute(f"CREATE TABLE objects AS FROM read_json_objects({pattern_of(utf_8)})")
    except duckdb.InvalidInputException as error:
        reason = str(error).rpartition(": ")[2].strip()
        raise DataError(f"{asked.path}:{place(sys.maxsize, None)}: this is no JSON: {reason}") from error
    objects = JsonObjects(connection, lambda number, name: f"{asked.path}:{place(number, name)}")
    conversion = TextConversion(date_format=asked.options.date_format)
    kinds: dict[str, set[type]] = (
        objects.names() if asked.table is None else {name: set() for name in asked.table_names}
    )
    named = asked.named(list(kinds))
    if not named:
        raise DataError(f"{asked.path}: there are no objects with columns")
    nested = _nested_types(connection, utf_8, [name for name, found in kinds.items() if found & {dict, list}])
    types = [type_ or nested.get(name) for name, type_ in named]
    columns = [Column(name, type_ or _TEXT) for (name, _), type_ in zip(named, types, strict=True)]
    found, others = objects.put_texts(columns)
    present = sorted(found) or range(len(columns))
    names = [columns[position].name for position in present] + sorted(others)
    asked.named(names, lambda position: f":{place(objects.first_with(names[position]), names[position])}")
    if asked.same_names:
        objects.check_names([columns[position].name for position in present])
    unknown = [position for position in present if types[position] is None]
    texts = [(f"c{position}", _may_be(kinds[columns[position].name])) for position in unknown]
    inferred = dict(zip(unknown, inferred_types(connection, "texts", texts, conversion), strict=True))
    for position, found_type in inferred.items():
        columns[position] = Column(columns[position].name, found_type.type)
    return TextRows(
        connection,
        "texts",
        tuple((f"c{position}", columns[position]) for position in present),
        conversion,
        lambda row, position: f"{asked.path}:{place(row, columns[present[position]].name)}",
        in_parts=True,
        hints=tuple(hint for position, found in inferred.items() for hint in _hints(columns[position].name, found)),
    )


def _hints(name: str, found: Inferred) -> list[str]:
    if not found.is_other_date or found.type != _TEXT:
        return []
    return [
        f"column {name} has dates as texts: say which part is the day (date_format, --date-format), such as '%d/%m/%Y'"
    ]


def _may_be(kinds: set[type]) -> MayBe:
    """The types that the scalars of a JSON column may have, by their types in Python."""
    if str not in kinds:
        return MayBe.NUMBER
    return MayBe.MOMENT if kinds <= {str, type(None)} else MayBe.TEXT


def _nested_types(connection: duckdb.DuckDBPyConnection, path: Path, names: Sequence[str]) -> dict[str, SqlType]:
    """The types of columns that have lists or objects, as DuckDB finds them in all rows."""
    if not names:
        return {}
    described = connection.sql(
        f"DESCRIBE SELECT {', '.join(map(quoted, names))} FROM read_json({pattern_of(path)}, sample_size = -1)"
    ).fetchall()
    return {
        name: parse_type(_without_json(parse_result_type(row[1]))) for name, row in zip(names, described, strict=True)
    }


def _without_json(kind: ResultType) -> str:
    """The text of a type with VARCHAR in place of JSON, at any depth."""
    return TypeKind.VARCHAR.value if kind.text == "JSON" else kind.text_with(_without_json)


def _in_utf_8(asked: AskedFile, folder: Path) -> Path:
    """The file, or a copy of it in UTF-8."""
    encoding = asked.options.encoding
    if encoding is None or asked.options.is_utf_8:
        return asked.path
    copy = folder / "utf-8"
    try:
        with pa.input_stream(asked.path, compression="detect") as source, copy.open("wb") as written:
            shutil.copyfileobj(codecs.EncodedFile(source, "utf-8", encoding), written)
    except UnicodeError as error:
        raise DataError(f"{asked.path} is not in the encoding {encoding}: {error}") from error
    return copy
