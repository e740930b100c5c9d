"""Folders of Parquet or CSV files as external tables, partitioned by the names of their folders as Hive does it.

Only files below an allowed directory are read.

Each file is a partition. The folders are listed anew for each statement, so files that come and go are seen by the next
one. PyArrow's datasets read the files; the statistics of the row groups of a Parquet file leave out those that cannot
hold a row that is needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from secateur.connectors.external.connector import (
    Connector,
    ConnectorContext,
    ConnectorPartition,
    ExternalScanRequest,
)
from secateur.dag.codec import portable
from secateur.engine.exchange.batches import BATCH_ROWS
from secateur.errors import DataError, NotSupportedError, ProgrammingError
from secateur.partitioning.pruning.row_predicate import one_of
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import NESTED, SqlType, TypeKind, parse_type, type_of_arrow

if TYPE_CHECKING:
    import pyarrow.dataset as pads


class FolderFormat(StrEnum):
    """The format of the files of a folder."""

    PARQUET = "parquet"
    CSV = "csv"
    """With a header line; an empty field is NULL, and ``""`` is the empty text."""


_NO_CSV: Final = frozenset({TypeKind.BLOB, TypeKind.INTERVAL, *NESTED, TypeKind.UUID})
_INTEGERS: Final = (r"^-?(0|[1-9]\d*)$",)
_FLOATS: Final = (
    r"^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d{1,2})?$|^(nan|NaN|-?inf|-?Infinity)$",
    r"^\D*(\d\.?){1,15}([eE]|$)|[fFnN]",
)
"""How numbers are written of which neither digits nor zeros are lost; a DOUBLE has 15 digits."""
_SUFFIXES: Final[Mapping[FolderFormat, tuple[str, ...]]] = {
    FolderFormat.PARQUET: (".parquet", ".pq"),
    FolderFormat.CSV: (".csv", ".csv.gz"),
}


def parquet_folder(
    path: str | Path,
    *,
    schema: pa.Schema | None = None,
    partitioned_by: Mapping[str, pa.DataType | None] | Sequence[str] | None = None,
) -> FolderConnector:
    """A folder of Parquet files as the connector of an external table.

    Args:
        path: Absolute, and below one of the cluster's ``external_directories``; all members see the same files there.
        schema: The columns in the files; None: those of the first file.
        partitioned_by: The columns in the names of the folders, with their types, or None for a type that is inferred:
            BIGINT or DATE if all values are such, else VARCHAR. None: those of the first file.
    """
    return _folder(path, FolderFormat.PARQUET, schema, partitioned_by)


def csv_folder(
    path: str | Path,
    *,
    schema: pa.Schema | None = None,
    partitioned_by: Mapping[str, pa.DataType | None] | Sequence[str] | None = None,
) -> FolderConnector:
    """A folder of CSV files as the connector of an external table; as :func:`parquet_folder`.

    Without a schema, names and types are those of the first file, whose first block determines them.
    """
    return _folder(path, FolderFormat.CSV, schema, partitioned_by)


def _folder(
    path: str | Path,
    form: FolderFormat,
    schema: pa.Schema | None,
    partitioned_by: Mapping[str, pa.DataType | None] | Sequence[str] | None,
) -> FolderConnector:
    declared = () if schema is None else tuple(Column(field.name, type_of_arrow(field.type)) for field in schema)
    hive: tuple[tuple[str, SqlType | None], ...] | None = None
    if isinstance(partitioned_by, Mapping):
        hive = tuple((name, None if arrow is None else type_of_arrow(arrow)) for name, arrow in partitioned_by.items())
    elif partitioned_by is not None:
        hive = tuple((name, None) for name in partitioned_by)
    return FolderConnector(str(path), form, declared, hive)


@portable("folder-connector")
@dataclass(frozen=True)
class FolderConnector(Connector):
    """The connector of :func:`parquet_folder` and :func:`csv_folder`. It travels as data.

    Attributes:
        path: The folder.
        format: The format of its files.
        declared: The columns in the files; none: those of the first file.
        partitioned_by: The columns in the names of folders, and their types; None for a type that is inferred, and for
            columns that are. :meth:`settle` infers them.
    """

    path: str
    format: FolderFormat
    declared: tuple[Column, ...] = ()
    partitioned_by: tuple[tuple[str, SqlType | None], ...] | None = None

    @property
    def title(self) -> str:
        return f"{self.format} folder {self.path}"

    def settle(self, context: ConnectorContext) -> Connector:
        root = allowed_path(self.path, context.directories)
        files = list(files_below(root, _SUFFIXES[self.format], context.directories))
        said = [hive_values(file) for file in files]
        hive = self.partitioned_by
        if hive is None:
            hive = tuple((name, None) for name in said[0]) if said else ()
        if not files and (not self.declared or any(kind is None for _, kind in hive)):
            raise ProgrammingError(
                f"it has no file with the ending {' or '.join(_SUFFIXES[self.format])}: declare its columns and their"
                " types, or add a file first"
            )
        for file, values in zip(files, said, strict=True):
            _check_folders(file, values, [name for name, _ in hive])
        names = {name for name, _ in hive}
        if twice := sorted(names & {column.name for column in self.declared}):
            raise ProgrammingError(
                f"{', '.join(twice)} is named by the folders: declare it after PARTITIONED BY, not among the columns of"
                " the files"
            )
        inside = self.declared or tuple(
            Column(field.name, type_of_arrow(field.type))
            for field in _inferred(root / files[0], self.format)
            if field.name not in names
        )
        types = tuple(
            (name, type_of_arrow(hive_type(name, [values[name] for values in said])) if kind is None else kind)
            for name, kind in hive
        )
        return replace(self, declared=inside, partitioned_by=types)

    def schema(self, context: ConnectorContext) -> pa.Schema:
        found = [(column.name, column.type.arrow) for column in self.declared]
        hive = [(name, kind.arrow) for name, kind in self.partitioned_by or () if kind is not None]
        return pa.schema([*found, *hive])

    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        root = allowed_path(self.path, context.directories)
        found = []
        hive = [name for name, _ in self.partitioned_by or ()]
        for file in files_below(root, _SUFFIXES[self.format], context.directories):
            values = hive_values(file)
            _check_folders(file, values, hive)
            kept = {name: values[name] for name in hive}
            found.append(ConnectorPartition(file, {name: one_of(_value(kept, name, schema)) for name in kept}))
        return found

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        root = allowed_path(self.path, context.directories)
        path = allowed_path(root / str(partition.key), context.directories)
        values = hive_values(str(partition.key))
        inside = pa.schema([field for field in request.schema if field.name not in partition.values])
        wanted = [name for name in request.columns if name not in partition.values]
        try:
            file = _dataset(path, self.format, None)
            own = _own_names(file.schema, inside, str(path))
            if self.format is FolderFormat.CSV:  # which has texts, read as the types of the table
                if not own:
                    raise DataError(
                        f"file {path}: its first line names none of the table's columns ({', '.join(inside.names)}), it"
                        f" has {', '.join(file.schema.names)!r}: names and values are separated by commas"
                    )
                read_as = [(own.get(field.name, field.name), _csv_type(field.type)) for field in inside]
                file = _dataset(path, self.format, pa.schema(read_as))
            (fragment,) = file.get_fragments()
            keep = request.predicate.to_arrow(_comparable(file.schema, inside))
            # One batch ahead: the rows that are read and not yet taken stay few for files of any size.
            scanner = fragment.scanner(
                schema=file.schema,
                columns=[own[name] for name in wanted if name in own],
                filter=keep,
                batch_size=BATCH_ROWS,
                batch_readahead=1,
                fragment_readahead=1,
            )
            for batch in scanner.to_batches():
                arrays = {name: batch.column(own[name]) if name in own else pa.nulls(batch.num_rows) for name in wanted}
                for name in partition.values:
                    arrays[name] = _repeated(_value(values, name, request.schema), batch.num_rows, request.schema, name)
                yield pa.RecordBatch.from_arrays([arrays[name] for name in request.columns], list(request.columns))
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"file {path} cannot be read as {self.format}: {error}") from error


def _dataset(path: Path, form: FolderFormat, schema: pa.Schema | None) -> pads.FileSystemDataset:
    import pyarrow.dataset as pads  # here, because it imports pandas: a quarter of a second of each process

    match form:
        case FolderFormat.PARQUET:
            reader: pads.FileFormat = pads.ParquetFileFormat()
        case FolderFormat.CSV:
            types = {} if schema is None else {field.name: field.type for field in schema}
            reader = pads.CsvFileFormat(
                parse_options=pacsv.ParseOptions(newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(
                    column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
                ),
            )
        case _:
            assert_never(form)
    return pads.dataset([str(path)], schema=schema, format=reader)


def _inferred(path: Path, form: FolderFormat) -> pa.Schema:
    """The columns of a file. In CSV they are those of Arrow's guess of which every text is written as their values are.

    So ``00501``, more digits than a DOUBLE has, and columns without a value are texts. The whole file is read for that.
    """
    guess = _dataset(path, form, None).schema
    if form is not FolderFormat.CSV:
        return guess
    texts = {field.name for field in guess if pa.types.is_null(field.type)}
    numbers = {
        field.name: _FLOATS if pa.types.is_floating(field.type) else _INTEGERS
        for field in guess
        if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
    }
    file = _dataset(path, form, pa.schema([(name, pa.string()) for name in guess.names]))
    for batch in file.to_batches(columns=list(numbers)):
        for name, patterns in numbers.items():
            for pattern in patterns:
                if not pc.all(pc.match_substring_regex(batch.column(name), pattern), min_count=0).as_py():
                    texts.add(name)
    return pa.schema([(field.name, pa.string() if field.name in texts else field.type) for field in guess])


def _csv_type(kind: pa.DataType) -> pa.DataType:
    """The type as which Arrow reads a column of a CSV file: its texts where it knows no values of the type in text.

    It takes the text of a BLOB for its bytes, and COPY writes four letters for one of them.
    """
    return pa.string() if type_of_arrow(kind).kind in _NO_CSV else kind


def _check_folders(file: str, values: Mapping[str, Any], columns: Sequence[str]) -> None:
    if [name for name in values if name in columns] != list(columns):
        raise DataError(
            f"file {file}: its folders name the columns ({', '.join(values)}), and the table is partitioned by"
            f" ({', '.join(columns)})"
        )


def _value(values: Mapping[str, str | None], column: str, schema: pa.Schema) -> Any:
    """The value of a column that the names of folders have."""
    return coerce(values[column], type_of_arrow(schema.field(column).type), column=column)


def _repeated(value: Any, count: int, schema: pa.Schema, column: str) -> pa.Array:
    return pa.repeat(pa.scalar(value, schema.field(column).type), count)


def _own_names(file: pa.Schema, schema: pa.Schema, path: str) -> dict[str, str]:
    """The names that a file has for columns of the table, found without regard to case; none for those that it lacks.

    Raises:
        DataError: The file has two columns for one.
    """
    own: dict[str, str] = {}
    names = {name.casefold(): name for name in schema.names}
    for name in file.names:
        ours = names.get(name.casefold())
        if ours is not None and own.setdefault(ours, name) is not name:
            raise DataError(f"file {path} has two columns for {ours!r}, {own[ours]!r} and {name!r}: rename one")
    return own


def _comparable(own: pa.Schema, schema: pa.Schema) -> dict[str, SqlType]:
    """The columns of a file that Arrow compares in the types of the table.

    The statistics of a Parquet file are those of its own types, in which another order can hold.
    """
    return {
        field.name: type_of_arrow(field.type)
        for field in schema
        if field.name in own.names and own.field(field.name).type == field.type
    }


_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def allowed_path(path: str | Path, directories: Sequence[Path]) -> Path:
    """The path that a name leads to, through links and ``..``.

    Raises:
        NotSupportedError: The cluster lets external tables read no directory, or not this one.
        ProgrammingError: The path is relative, or there is no such file or folder.
    """
    if not directories:
        raise NotSupportedError(
            f"folder {str(path)!r}: external tables read no directories of this cluster's machines: start it with"
            " external_directories=[...]"
        )
    if not Path(path).is_absolute():
        raise ProgrammingError(f"folder {str(path)!r}: give an absolute path; it is one of the members' machines")
    try:
        resolved = Path(path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        resolved = None
        reason = error
    if resolved is not None and any(resolved.is_relative_to(directory.resolve()) for directory in directories):
        return resolved
    if resolved is None and any(
        Path(os.path.normpath(path)).is_relative_to(directory.resolve()) for directory in directories
    ):
        raise ProgrammingError(f"there is no {str(path)!r} on the machine of this member: {reason}")
    raise NotSupportedError(
        f"{str(path)!r} is not below a directory that external tables may read: external_directories of this"
        f" cluster has {', '.join(map(str, directories))}"
    )


def files_below(root: Path, suffixes: tuple[str, ...], directories: Sequence[Path]) -> Iterator[str]:
    """Yield the files of a folder and those below it, relative to it, in order.

    Names that begin with ``.`` are left out, and names that begin with ``_`` unless they have a ``=``, as writers of
    such folders put their own files there. Links to folders are not followed.

    Raises:
        NotSupportedError: A file is a link to one that may not be read.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(names):
            if not _is_hidden(name) and name.lower().endswith(suffixes):
                path = Path(folder, name)
                if path.is_symlink():
                    allowed_path(path, directories)
                yield path.relative_to(root).as_posix()


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def hive_values(file: str) -> dict[str, str | None]:
    """The values in the names of the folders of a file, by column; None for NULL.

    Hive writes the values of the partitioning columns into the names of the folders, ``dt=2026-11-01/country=de/``,
    with percent signs for other characters, and ``__HIVE_DEFAULT_PARTITION__`` for NULL.
    """
    found: dict[str, str | None] = {}
    for part in Path(file).parts[:-1]:
        column, sign, value = part.partition("=")
        if sign and column:
            found[unquote(column)] = None if value == _NULL else unquote(value)
    return found


def hive_type(column: str, values: Iterable[str | None]) -> pa.DataType:
    """The type of a column in the names of folders: BIGINT or DATE if all values are such, else VARCHAR."""
    texts = {value for value in values if value is not None}
    if texts and all(map(_INTEGER.fullmatch, texts)):
        return pa.int64()
    if texts and all(_is_date(column, text) for text in texts):
        return pa.date32()
    return pa.string()


def _is_date(column: str, text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        coerce(text, parse_type("DATE"), column=column)
    except DataError:
        return False
    return True
