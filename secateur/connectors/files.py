"""Files as the source of a DAG: Parquet, CSV, Arrow IPC or lines of text.

A glob pattern finds them, and they are distributed over the members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from glob import glob
from pathlib import Path
from typing import Literal

import pyarrow as pa

from secateur.connectors.file_format import SourceFormat, file_format, read_file
from secateur.connectors.pull import Pull
from secateur.dag.placement import Placement, Spread, Unrestricted
from secateur.dag.processor import Params, Processor, ProcessorContext
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.errors import DagError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.job_requirements import JobRequirements


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
    form = file_format(format, str(pattern))
    if form is SourceFormat.TEXT and (columns is not None or schema is not None):
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
    """Distributes the files of a member over its processors.

    Args:
        read: Reads one file.
        files: The files to read.
        pattern: Expanded on the member instead, if given.
    """

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
