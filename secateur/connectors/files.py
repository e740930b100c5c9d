"""Files as the source of a DAG: Parquet, CSV, Arrow IPC or lines of text; and Parquet files as its sink.

A glob pattern finds them, and they are distributed over the members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, assert_never

import pyarrow as pa

from secateur.connectors.functions import Pull
from secateur.dag.placement import Placement, Spread, Unrestricted
from secateur.dag.processor import Outbox, Params, Processor, ProcessorContext
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.exchange.batches import BATCH_ROWS
from secateur.errors import DagError, DataError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.arrow_layout import empty_batch
from secateur.partitioning.types.held_values import check_texts
from secateur.protocol.job_description import JobRequirements

if TYPE_CHECKING:
    import pyarrow.parquet as pq


_TEXT_BYTES: Final = 1 << 20


def file_source(
    pattern: str | Path,
    *,
    format: Literal["parquet", "csv", "arrow", "text"] | None = None,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    shared: bool = True,
) -> FileSource:
    """A source of the rows of files, read in a thread in batches; a whole file is never in memory.

    **Paths are those of the machines of the members**, not of the client. The source is sent as code and therefore
    accepted only by a cluster that allows code: a client that may only send data has no right to read files of the
    members' machines.

    Args:
        pattern: A path, or a glob pattern; ``**`` matches any folders. Files whose name begins with ``.`` are left
            out.
        format: ``"parquet"``, ``"csv"``, ``"arrow"`` or ``"text"``; None: by the suffix of the pattern.
        columns: The columns to read, in order; None for all. Columns that are not wanted are not read from Parquet and
            Arrow files.
        schema: The schema to read the files with; None: each file's own, so CSV files whose types are inferred
            differently need it.
        shared: True: all members see the same files. The coordinator expands the pattern when the job starts and
            distributes the files over as many members as there are files; in a job that reads partitions of a table
            too, over the members that own those, so that no member is added. False: every member has files of its own
            under that name, and reads all of them.

    Raises:
        DagError: The format is unknown, or columns are picked from text. A pattern without files fails only when the
            job starts.
    """
    form = _file_format(format, str(pattern))
    if form is _SourceFormat.TEXT and (columns is not None or schema is not None):
        raise DagError(
            f"file_source({str(pattern)!r}): lines of text have the one column 'line'; leave out columns and schema"
        )
    return FileSource(
        str(pattern),
        partial(read_file, form=form, columns=None if columns is None else tuple(columns), schema=schema),
        shared,
    )


class FileSource(ProcessorMetaSupplier):
    """The meta-supplier of :func:`file_source`.

    Attributes:
        shared: Whether all members see the same files.
    """

    close_is_cooperative = True

    def __init__(self, pattern: str, read: Callable[[str], Iterator[pa.RecordBatch]], shared: bool) -> None:
        self._pattern = pattern
        self._read = read
        self.shared = shared
        self._files: tuple[str, ...] = ()
        self._placement: Placement = Unrestricted()

    def needs(self, vertex: str, params: Params, table: Callable[[str], TableDef]) -> JobRequirements | None:
        return JobRequirements() if self.shared else None

    def init(self, context: MetaContext) -> None:
        if not self.shared:
            return
        self._files = _matching(self._pattern, context.coordinator)
        self._placement = Spread(len(self._files))

    def placement(self) -> Placement:
        return self._placement

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        if not self.shared:
            return {member: _FileSupplier(self._read, (), self._pattern) for member in members}
        return {
            member: _FileSupplier(self._read, self._files[index :: len(members)], None)
            for index, member in enumerate(members)
        }


class _FileSupplier(ProcessorSupplier):
    """Distributes files over the processors of a member: the given ones, or those that a pattern matches there."""

    close_is_cooperative = True

    def __init__(
        self, read: Callable[[str], Iterator[pa.RecordBatch]], files: Sequence[str], pattern: str | None
    ) -> None:
        self._read = read
        self._files = tuple(files)
        self._pattern = pattern

    def init(self, context: SupplierContext) -> None:
        if self._pattern is not None:
            self._files = _matching(self._pattern, context.member)

    def get(self, count: int) -> Sequence[Processor]:
        return [Pull(partial(self._batches, self._files[index::count])) for index in range(count)]

    def _batches(self, files: Sequence[str], _: ProcessorContext) -> Iterator[pa.RecordBatch]:
        for path in files:
            yield from self._read(path)


def _matching(pattern: str, member: str) -> tuple[str, ...]:
    found = sorted(glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob knows no absolute patterns
    files = tuple(path for path in found if Path(path).is_file())
    if not files:
        raise DagError(
            f"no file matches {pattern!r} on the machine of member {member} (working directory {Path.cwd()}); paths are"
            " those of the members' machines"
        )
    return files


class _SourceFormat(StrEnum):
    """The format of a file's content."""

    PARQUET = "parquet"
    CSV = "csv"
    """CSV files with a header line; types are inferred from each file's first block, unless a schema is given."""
    ARROW = "arrow"
    """Arrow IPC files (also known as Feather version 2)."""
    TEXT = "text"
    """UTF-8 lines: one column ``line`` of strings, without line ends."""


_OF_SUFFIX: Final = {
    ".parquet": _SourceFormat.PARQUET,
    ".pq": _SourceFormat.PARQUET,
    ".csv": _SourceFormat.CSV,
    ".arrow": _SourceFormat.ARROW,
    ".feather": _SourceFormat.ARROW,
    ".ipc": _SourceFormat.ARROW,
    ".txt": _SourceFormat.TEXT,
    ".log": _SourceFormat.TEXT,
}

_TEXT_SCHEMA: Final = pa.schema([("line", pa.string())])


def _file_format(name: str | None, pattern: str) -> _SourceFormat:
    """Return the format with the given name or, without a name, that of the pattern's suffix.

    Raises:
        DagError: There is no such format, or the suffix does not determine one.
    """
    known = ", ".join(repr(str(form)) for form in _SourceFormat)
    if name is None:
        found = _OF_SUFFIX.get(Path(pattern).suffix.lower())
        if found is None:
            raise DagError(
                f"file_source({pattern!r}): the suffix does not say the format; pass format=, one of {known}"
            )
        return found
    try:
        return _SourceFormat(name)
    except ValueError:
        raise DagError(f"file_source({pattern!r}): there is no format {name!r}; it is one of {known}") from None


def read_file(
    path: str, form: _SourceFormat, columns: Sequence[str] | None, schema: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches; at least one batch, so that the schema is known.

    Args:
        path: The path of one file on this machine.
        form: Its format.
        columns: The columns to read, in order; None for all. Only these are read from Parquet and Arrow files.
        schema: The schema to read it with; None: its own.

    Raises:
        DagError: A column is not there; names the file.
    """
    match form:
        case _SourceFormat.TEXT:
            return _lines(path)
        case _SourceFormat.PARQUET | _SourceFormat.CSV | _SourceFormat.ARROW:
            return _table_rows(path, form, columns, schema)
        case _:
            assert_never(form)


def _table_rows(
    path: str, form: _SourceFormat, columns: Sequence[str] | None, schema: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    import pyarrow.dataset as pads  # here, because it imports pandas: a quarter of a second of each process

    file = pads.dataset([path], schema=schema, format="ipc" if form is _SourceFormat.ARROW else str(form))
    missing = [name for name in columns or () if name not in file.schema.names]
    if missing:
        raise DagError(f"file {path} has no column {missing[0]!r}; it has {', '.join(file.schema.names)}")
    names = file.schema.names if columns is None else list(columns)
    rows = 0
    # One batch ahead: the rows that are read and not yet taken stay few for files of any size.
    for batch in file.scanner(
        columns=names, batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1
    ).to_batches():
        if batch.num_rows:
            _check(batch, path, form, rows + 1)
            rows += batch.num_rows
            yield batch
    if not rows:
        yield empty_batch(pa.schema([file.schema.field(name) for name in names]))


def _check(batch: pa.RecordBatch, path: str, form: _SourceFormat, first_row: int) -> None:
    """Arrow maps files of its own as they are; of the other formats it makes the arrays itself, but not the texts."""
    try:
        if form is _SourceFormat.ARROW:
            batch.validate(full=True)
        else:
            check_texts(batch, first_row)
    except DataError as error:
        raise DataError(f"file {path}, {error.message}", **error.details) from error
    except pa.ArrowInvalid as error:
        raise DataError(
            f"file {path} contradicts itself, and is damaged or was not written by Arrow: {error}"
        ) from error


def _lines(path: str) -> Iterator[pa.RecordBatch]:
    rows = 0
    with Path(path).open(encoding="utf-8", newline=None) as file:
        while lines := file.readlines(_TEXT_BYTES):
            rows += len(lines)
            yield pa.record_batch([pa.array([line.rstrip("\n") for line in lines], pa.string())], schema=_TEXT_SCHEMA)
    if not rows:
        yield empty_batch(_TEXT_SCHEMA)


def parquet_sink(folder: str | Path, *, compression: str = "zstd") -> ParquetSink:
    """A sink that writes ``part-<processor>-<job>.parquet`` files into a folder of the members' machines.

    The folder is made if it does not exist.

    A processor writes a hidden file; when all processors of its member have succeeded, the files get their names, each
    by one atomic rename. After a failure the hidden files are removed, and so are the files of members that had already
    finished, as far as the coordinator sees their folder: always, on one machine or a shared file system; members with
    folders of their own may leave complete files of a failed job, which bear its id. A member that is killed may leave
    hidden files. Files of other jobs are never touched, so the same folder may be reused.

    A processor that receives no batch writes no file. The sink is sent as code, like
    :func:`~secateur.connectors.files.file_source` and for the same reason.

    Args:
        folder: A folder on the machine of each member.
        compression: As ``pyarrow.parquet.ParquetWriter`` knows it.
    """
    return ParquetSink(str(folder), compression)


class ParquetSink(ProcessorMetaSupplier):
    """The meta-supplier of :func:`parquet_sink`."""

    init_is_cooperative = True

    def __init__(self, folder: str, compression: str) -> None:
        self._folder = folder
        self._compression = compression
        self._job = ""

    def init(self, context: MetaContext) -> None:
        self._job = context.job_id

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: _ParquetSupplier(self._folder, self._compression) for member in members}

    def close(self, error: BaseException | None) -> None:
        if error is not None and self._job:
            for path in Path(self._folder).glob(f"part-*-{self._job}.parquet"):
                path.unlink(missing_ok=True)


class _ParquetSupplier(ProcessorSupplier):
    def __init__(self, folder: str, compression: str) -> None:
        self._folder = folder
        self._compression = compression
        self._writers: list[_Write] = []

    def init(self, context: SupplierContext) -> None:
        Path(self._folder).mkdir(parents=True, exist_ok=True)

    def get(self, count: int) -> Sequence[Processor]:
        self._writers = [_Write(Path(self._folder), self._compression) for _ in range(count)]
        return list(self._writers)

    def close(self, error: BaseException | None) -> None:
        for writer in self._writers:
            if error is None:
                writer.publish()
            else:
                writer.discard()


class _Write(Processor):
    cooperative = False

    def __init__(self, folder: Path, compression: str) -> None:
        self._folder = folder
        self._compression = compression
        self._name = ""
        self._file: pq.ParquetWriter | None = None
        self._is_whole = False

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)
        self._name = f"part-{context.global_index:05d}-{context.job_id}.parquet"

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if self._file is None:
            import pyarrow.parquet as pq  # here: whoever makes a pipeline has no use for it

            self._file = pq.ParquetWriter(self._hidden, batch.schema, compression=self._compression)
        if not batch.schema.equals(self._file.schema):
            raise DataError(
                f"a Parquet file has one schema: the first batch had {_columns(self._file.schema)}, this one has"
                f" {_columns(batch.schema)}"
            )
        if batch.num_rows:
            self._file.write_batch(batch)
        return True

    def complete(self) -> bool:
        if self._file is not None:
            self._file.close()
            self._is_whole = True
        return True

    def close(self) -> None:
        if self._file is not None and not self._is_whole:
            with suppress(OSError):  # a full disk has been the cause of the failure already
                self._file.close()

    def publish(self) -> None:
        """Give the file its name."""
        if self._is_whole:
            self._hidden.rename(self._folder / self._name)

    def discard(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._hidden.unlink(missing_ok=True)

    @property
    def _hidden(self) -> Path:
        return self._folder / f".{self._name}.part"


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
