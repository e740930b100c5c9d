"""The data source of format ``secateur``.

Users call :func:`secateur.spark.write`; without it, a write looks like this::

    spark.dataSource.register(SecateurDataSource)
    df.write.format("secateur").mode("append").options(address=cluster.address, table="flights").save()

Spark accepts the modes ``append`` and ``overwrite`` for such a source; it refuses the others, including its default.
"""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from secateur.client.loads.load import LoadMode
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.schema import check_columns
from secateur.connectors.spark.staging import CHUNK_BYTES
from secateur.connectors.spark.writer import LoadWriter
from secateur.errors import ProgrammingError

__all__ = ["SecateurDataSource"]

_OPTIONS: Final = ("address", "chunk_bytes", "load_id", "mode", "report", "table", "token")


class SecateurDataSource(DataSource):
    """Writes DataFrames into tables.

    Options:
        address: ``secateur://host:port`` of the cluster.
        table: The table; it has to exist.
        mode: ``append``, ``overwrite`` or ``upsert``; by default that of Spark's own save mode.
        token: The secret of the cluster, if it has one.
        chunk_bytes: Arrow bytes that a task gathers before it sends; by default 32 MiB.
        load_id: A name for the load, never used before; by default a new one.
        report: A file on the driver's machine for a report of the published rows, as JSON.
    """

    @classmethod
    def name(cls) -> str:
        return "secateur"

    def writer(self, schema: StructType, overwrite: bool) -> LoadWriter:
        """Prepare a load: find the table and its owners, and check that the columns fit.

        Raises:
            ProgrammingError: An option is missing, unknown, or contradicts Spark's save mode.
            UnknownTableError: There is no such table.
            UnreachableError: The cluster cannot be reached at the address.
            AuthenticationError: The token is missing or wrong.
            Error: As ``check_columns``.
        """
        with noted_errors():
            unknown = sorted(set(self.options) - set(_OPTIONS))
            if unknown:
                raise ProgrammingError(
                    f"format secateur has no option {', '.join(unknown)}; it has {', '.join(_OPTIONS)}"
                )
            mode = _mode(self.options.get("mode"), overwrite=overwrite)
            chunk_bytes = _positive("chunk_bytes", self.options.get("chunk_bytes", str(CHUNK_BYTES)))
            endpoint = Endpoint(self._required("address"), self.options.get("token"))
            with endpoint.session() as session:
                table = session.table(self._required("table"))
                topology = session.topology_of(table)
            check_columns(schema, table)
            return LoadWriter(
                table,
                topology,
                endpoint,
                self.options.get("load_id", uuid4().hex),
                mode,
                chunk_bytes,
                self.options.get("report"),
            )

    def _required(self, option: str) -> str:
        value: str | None = self.options.get(option)
        if not value:
            raise ProgrammingError(f'format secateur needs the option {option!r}: .option("{option}", ...)')
        return value


def _positive(option: str, value: str) -> int:
    if not value.isdecimal() or int(value) == 0:
        raise ProgrammingError(f"option {option}={value!r}: expected a positive whole number")
    return int(value)


def _mode(option: str | None, *, overwrite: bool) -> LoadMode:
    """The mode of a load, from the option and Spark's save mode."""
    saved = LoadMode.OVERWRITE if overwrite else LoadMode.APPEND
    mode = saved if option is None else LoadMode.of(option)
    if (mode is LoadMode.OVERWRITE) is not overwrite:
        raise ProgrammingError(
            f'option mode={mode.value!r} contradicts .mode("{saved}"): upsert goes with .mode("append"), the others'
            " with themselves"
        )
    return mode
