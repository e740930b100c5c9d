"""Opens a file of rows for a load: its columns are matched by name, its values are read by the types of the table.

Every format ends in Arrow. Parquet and Arrow files have types, which the load converts to those of the table. CSV and
JSON files have texts, which are converted here, and exactly: a text that its column would round or cut is refused, with
its line. Without a table, the types of such a file are inferred from all of its texts.
"""

from __future__ import annotations

import codecs
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from secateur.client.copy.csv_texts import csv_form
from secateur.client.copy.file_database import FileDatabase, file_database
from secateur.client.copy.json_texts import JsonObjects, place_in_json
from secateur.client.copy.load_options import FORMATS, AskedFile, FileOptions, pattern_of
from secateur.client.copy.text_values import DAY_AND_MONTH, TextConversion, TextRows
from secateur.errors import DataError, NullKeyError, ProgrammingError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import SqlType, TypeKind, parse_type
from secateur.partitioning.types.result_type import ResultType, parse_result_type
from secateur.partitioning.types.sql_text import quoted, text_literal
from secateur.protocol.copy_file import CopyFile, CopyFormat

if TYPE_CHECKING:
    import duckdb

_TEXT: Final = SqlType(TypeKind.VARCHAR)
_ANY: Final = "texts"
"""The fact that a text is there."""
_OTHER_DATE: Final = "other_date"
_FIRST_ROWS: Final = 10_000
_DIGITS_MAX: Final = 38
_SHORT_DIGITS: Final = 18
"""A DECIMAL of so many digits is a 64-bit integer."""
_MONEY_SCALES: Final = range(2, 9)
_MOMENTS: Final = (TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ)
_WHOLE: Final = (TypeKind.BOOLEAN, TypeKind.BIGINT, TypeKind.HUGEINT)
_ZONE: Final = r":[0-9]{2}(\.[0-9]+)?\s*(Z|UTC|[-+][0-9:]+)\s*$"

_BATCH_ROWS: Final = 65_536
_ENDINGS: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


@dataclass(frozen=True, slots=True)
class TableFile:
    """An open file.

    Attributes:
        columns: Its columns: with the names and types of the table, and otherwise its own.
        reader: Its rows, which can be read once, in Arrow types that convert to those of the columns.
        rows: How many they are; None for a format that does not say it before they are read.
        hints: What to know about the types that were found for columns.
    """

    columns: tuple[Column, ...]
    reader: pa.RecordBatchReader
    rows: int | None
    hints: tuple[str, ...] = ()


@contextmanager
def open_table_file(
    path: Path,
    options: FileOptions | None = None,
    columns: Sequence[Column] | None = None,
    *,
    same_names: bool = False,
) -> Iterator[TableFile]:
    """Open a file for the length of the block.

    Args:
        path: The file; it may be compressed with gzip or zstd if it is CSV or JSON.
        options: What is said about it.
        columns: Those of the table that it is for; None finds out what it has.
        same_names: Whether an object of JSON that does not name a column of another object is an error; else it has
            NULL there.

    Raises:
        ProgrammingError: There is no such file, it cannot be read, its format is not known, or does not have an option
            that is said.
        UnknownColumnError: It has a column that the table lacks, or lacks one that is said.
        DataError: It is not of the format, or has a value that its column cannot hold, when that is read.
    """
    options = options or FileOptions()
    if not path.is_file():
        raise ProgrammingError(f"there is no file {str(path)!r}")
    file_format = options.file_format or _format_of(path)
    options.check(file_format)
    asked = AskedFile(path, options, columns, options.declared(), same_names)
    match file_format:
        case "arrow":
            with _errors_of(path, "arrow"), pa.memory_map(str(path)) as source:
                reader = _arrow_reader(source)
                yield TableFile(asked.columns_of(reader.schema), reader, None)
        case "parquet":
            with _errors_of(path, "parquet"), pyarrow.parquet.ParquetFile(path) as parquet:
                names = [parquet.schema.column(number).converted_type for number in range(len(parquet.schema))]
                if "INTERVAL" in names:  # which Arrow reads as bytes
                    with file_database(CopyFile(str(path), CopyFormat.PARQUET), "read") as database:
                        rows = database.connection.sql(f"FROM read_parquet({pattern_of(path)})")
                        reader = rows.to_arrow_reader(_BATCH_ROWS)
                        yield TableFile(asked.columns_of(reader.schema), reader, parquet.metadata.num_rows)
                        return
                batches = parquet.iter_batches(_BATCH_ROWS)
                reader = pa.RecordBatchReader.from_batches(parquet.schema_arrow.remove_metadata(), batches)
                yield TableFile(asked.columns_of(reader.schema), reader, parquet.metadata.num_rows)
        case kind:
            with file_database(CopyFile(str(path), CopyFormat(kind)), "read") as database:
                rows = (_csv_rows if kind == "csv" else _json_rows)(database, asked)
                with _errors_of(path, kind, rows):
                    columns = tuple(column for _, column in rows.columns)
                    yield TableFile(columns, rows.reader(), None, rows.hints)


def _arrow_reader(source: pa.MemoryMappedFile) -> pa.RecordBatchReader:
    """Read the file form, which has a magic word at its start, or the stream form of Arrow IPC."""
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    if is_file:
        file = pa.ipc.open_file(source)
        return pa.RecordBatchReader.from_batches(
            file.schema, (_checked(file.get_batch(number)) for number in range(file.num_record_batches))
        )
    stream = pa.ipc.open_stream(source)
    return pa.RecordBatchReader.from_batches(stream.schema, map(_checked, stream))


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Refuse offsets that point outside of their buffers, which would crash whoever follows them."""
    batch.validate(full=True)
    return batch


def _format_of(path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in (".gz", ".zst")]
    found = _ENDINGS.get(endings[-1]) if endings else None
    if found is None:
        raise ProgrammingError(f"the name of {str(path)!r} does not say its format: name one of {', '.join(FORMATS)}")
    return found


@contextmanager
def _errors_of(path: Path, file_format: str, rows: TextRows | None = None) -> Iterator[None]:
    """Around the reading and loading of a file: errors name it, and the place of a NULL that may not be in texts."""
    try:
        yield
    except pa.ArrowException as error:
        raise DataError(f"{str(path)!r} cannot be read as {file_format}: {error}") from error
    except OSError as error:
        raise ProgrammingError(f"{str(path)!r} cannot be read as {file_format}: {error}") from error
    except (DataError, NullKeyError) as error:
        if error.message.startswith(str(path)):
            raise
        is_null = rows is not None and isinstance(error, NullKeyError)
        place = rows.place_of_null(str(error.details.get("column"))) if rows is not None and is_null else None
        raise type(error)(f"{place or path}: {error.message}", **error.details) from error


def _csv_rows(database: FileDatabase, asked: AskedFile) -> TextRows:
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
    types = iter(
        _inferred_types(database.connection, form.source, [(text, _MayBe.ANY) for text in unknown], conversion)
    )
    columns, hints = [], []
    for name, type_ in named:
        found = _Inferred(type_, is_other_date=False) if type_ is not None else next(types)
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


def _json_rows(database: FileDatabase, asked: AskedFile) -> TextRows:
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
    inferred = dict(zip(unknown, _inferred_types(connection, "texts", texts, conversion), strict=True))
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


def _hints(name: str, found: _Inferred) -> list[str]:
    if not found.is_other_date or found.type != _TEXT:
        return []
    return [
        f"column {name} has dates as texts: say which part is the day (date_format, --date-format), such as '%d/%m/%Y'"
    ]


def _may_be(kinds: set[type]) -> _MayBe:
    """The types that the scalars of a JSON column may have, by their types in Python."""
    if str not in kinds:
        return _MayBe.NUMBER
    return _MayBe.MOMENT if kinds <= {str, type(None)} else _MayBe.TEXT


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


class _Inferred(NamedTuple):
    """The type of a column, and whether its texts are dates that could have the day or the month first."""

    type: SqlType
    is_other_date: bool


class _MayBe(Enum):
    """The types that texts may have, if they are written so."""

    ANY = "numbers, booleans, dates, times and texts"
    NUMBER = "numbers and booleans"
    """Scalars of JSON; its numbers are DOUBLEs."""
    MOMENT = "dates, times and texts"
    TEXT = "texts"


def _inferred_types(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    columns: Sequence[tuple[str, _MayBe]],
    conversion: TextConversion,
) -> list[_Inferred]:
    """Find the types of columns of texts.

    A type is taken only if nothing is lost: ``00501`` and ``+49 30`` stay texts, and amounts that all have two digits
    behind the point, or more, are decimals, since a sum of DOUBLEs would not be what the file adds up to.

    ``source`` is SQL of rows whose columns are VARCHAR; ``conversion`` says how dates are written.
    """
    if not columns:
        return []
    ways = [(name, _ways(name, conversion)) for name, _ in columns]
    # What the first rows rule out need not be looked for in the others.
    first = _facts(connection, ways, f"(SELECT * FROM {source} LIMIT {_FIRST_ROWS})")
    left = [
        (text, {name: condition for name, condition in conditions.items() if facts[name] == facts[_ANY]})
        for (text, conditions), facts in zip(ways, first, strict=True)
    ]
    found = _facts(connection, left, source)
    return [
        _Inferred(_type(facts, may_be), bool(facts[_ANY]) and facts.get(_OTHER_DATE) == facts[_ANY])
        for facts, (_, may_be) in zip(found, columns, strict=True)
    ]


def _facts(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[tuple[str, dict[str, str]]], source: str
) -> Sequence[dict[str, Any]]:
    """For each column, how many texts are written in which way, and the digits of its decimals."""
    items = []
    for text, conditions in columns:
        facts = [f"{name} := count(*) FILTER ({condition})" for name, condition in conditions.items()]
        if "DECIMAL" in conditions:
            facts += [f"{name} := {digits}" for name, digits in _digits(text).items()]
        items.append(f"struct_pack({', '.join(facts)})")
    return connection.execute(f"SELECT {', '.join(items)} FROM {source}").fetchone() or ()


def _ways(text: str, conversion: TextConversion) -> dict[str, str]:
    """The ways in which texts may be written, as conditions by the names of types."""
    integer = f"regexp_full_match({text}, '-?(0|[1-9][0-9]{{0,37}})')"
    number = f"regexp_full_match({text}, '-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?|-?(inf|infinity)|nan', 'i')"
    is_short = f"length(regexp_replace({text}, '[^0-9]', '', 'g')) <= 15"
    has_zone = f"regexp_matches({text}, '{_ZONE}')"
    moments = {
        kind.name: f"regexp_matches({text}, '[0-9]|inf') AND {conversion.or_null(text, SqlType(kind))} IS NOT NULL"
        for kind in _MOMENTS
    }
    return {
        _ANY: f"{text} <> ''",
        _OTHER_DATE: f"regexp_full_match({text}, {text_literal(DAY_AND_MONTH)})",
        "BOOLEAN": f"lower({text}) IN ('true', 'false')",
        "BIGINT": f"{integer} AND TRY_CAST({text} AS BIGINT) IS NOT NULL",
        "HUGEINT": integer,
        "DECIMAL": f"regexp_full_match({text}, '-?(0|[1-9][0-9]*)(\\.[0-9]+)?')",
        "DOUBLE": f"{number} AND ({is_short} OR lower(CAST(TRY_CAST({text} AS DOUBLE) AS VARCHAR)) = lower({text}))",
        **moments,
        "TIMESTAMP": f"{moments['TIMESTAMP']} AND NOT {has_zone}",
        "TIMESTAMPTZ": f"{moments['TIMESTAMPTZ']} AND ({has_zone} OR regexp_matches({text}, 'inf'))",
        "UUID": f"regexp_full_match({text}, '[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}')",
    }


def _digits(text: str) -> dict[str, str]:
    """The most digits of decimals before the point, and the least and most of those that have a point behind it."""
    behind = f"length(regexp_extract({text}, '\\.([0-9]+)', 1))"
    return {
        "before": f"max(length(regexp_extract({text}, '[0-9]+')))",
        "least": f"min({behind}) FILTER (contains({text}, '.'))",
        "most": f"max({behind})",
    }


def _type(facts: dict[str, Any], may_be: _MayBe) -> SqlType:
    """The first type that all texts are written as; the order is that of preference."""
    if not facts[_ANY]:
        return _TEXT
    scale, digits = facts.get("most") or 0, (facts.get("before") or 0) + (facts.get("most") or 0)
    is_money = may_be is _MayBe.ANY and scale in _MONEY_SCALES and facts.get("least") == scale
    kinds: list[TypeKind] = []
    if may_be in (_MayBe.ANY, _MayBe.NUMBER):
        numbers = [TypeKind.DECIMAL, TypeKind.DOUBLE] if is_money else [TypeKind.DOUBLE, TypeKind.DECIMAL]
        kinds += [*_WHOLE, *numbers]
    if may_be in (_MayBe.ANY, _MayBe.MOMENT):
        kinds += [*_MOMENTS, TypeKind.UUID]
    found = next((kind for kind in kinds if facts.get(kind.name) == facts[_ANY]), TypeKind.VARCHAR)
    if found is not TypeKind.DECIMAL:
        return SqlType(found)
    return (
        SqlType(found, _SHORT_DIGITS if digits <= _SHORT_DIGITS else _DIGITS_MAX, scale)
        if digits <= _DIGITS_MAX
        else _TEXT
    )
