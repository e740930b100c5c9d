"""Parquet files as the sink of a DAG: one for each processor, visible only once the job has succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.dag.processor import Outbox, Processor, ProcessorContext
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.errors import DataError


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
