"""The interface of a connector: a source in Python that SQL reads as a table.

Its methods are called through this file, which checks their results and has errors name the connector.

The life of a statement that reads an external table::

    at the member that coordinates it   connector.partitions(...)      once
                                        partitions that cannot hold a row of the answer are left out
    on the members, in parallel         connector.read(partition, ...) for each that is left

The engine filters all rows again. A connector that ignores the columns, the predicate and the limit of the request is
slower and still right; one whose partitions hold rows outside of the values that they declare loses rows.
:func:`secateur.testing.verify_connector` checks one against its declarations.

Source: ``SqlConnector`` of Hazelcast (``fullScanReader`` with partition pruning candidates), ``ConnectorSplitManager``
of Trino, ``TableProvider.scan`` of DataFusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa

from secateur.dag.codec import EncodedCode, EncodedData, decode_portable, encode_portable
from secateur.engine.failure import users_traceback
from secateur.errors import DagError, DataError, Error, JobFailedError, ProgrammingError
from secateur.partitioning.pruning.row_predicate import RowPredicate, ValueSet
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.column_type import type_of_arrow
from secateur.protocol.codec import decode, encode


@dataclass(frozen=True, slots=True)
class ConnectorContext:
    """The member on which a connector is called.

    Attributes:
        member: Its id.
        directories: The directories of its machine that external tables may read, as the cluster was started with.
    """

    member: str
    directories: tuple[Path, ...] = ()


class ConnectorPartition(msgspec.Struct, frozen=True):
    """A part of an external table that one processor reads.

    Attributes:
        key: The key by which :meth:`Connector.read` finds it.
        values: The values that columns can have in it, by column: :func:`secateur.connectors.one_of` for a list or a
            directory of Hive, :func:`secateur.connectors.between` for a range. A column that is not named can have any
            value.
    """

    key: str | int
    values: Mapping[str, ValueSet] = {}


class ExternalScanRequest(msgspec.Struct, frozen=True):
    """The columns and rows that a statement needs of each partition that it reads.

    Attributes:
        columns: The columns to read, at least one. A batch may have more, in any order.
        schema: All columns of the table, with the types of its columns in SQL.
        predicate: Rows outside of it are not needed. A connector may leave out any of them.
        limit: As many rows of the partition are enough; None: all are needed. Not together with a predicate.
    """

    columns: tuple[str, ...]
    schema: pa.Schema
    predicate: RowPredicate = RowPredicate()
    limit: int | None = None

    @property
    def read_schema(self) -> pa.Schema:
        """The columns to read, in order."""
        return pa.schema([self.schema.field(name) for name in self.columns])


class Connector:
    """A source of the rows of an external table. Subclass it, and register an object with ``connection.register()``.

    It travels by cloudpickle, to clusters that were started with ``allow_code=True``: keep connections and data out of
    its attributes, and open them in the methods. Its methods are called in threads, on several members at the same
    time; what they change in ``self`` is lost.
    """

    @property
    def title(self) -> str:
        """The connector in words, for EXPLAIN and errors."""
        return type(self).__name__

    def settle(self, context: ConnectorContext) -> Connector:
        """The connector that the table is to keep. Called once, when it is registered, before :meth:`schema`.

        A connector that infers something about its source returns one that has it declared.
        """
        return self

    def schema(self, context: ConnectorContext) -> pa.Schema:
        """The columns of the table. Called once, when it is registered.

        Types become those of SQL as in loads; NOT NULL is not used.
        """
        raise NotImplementedError(f"{type(self).__name__} has no schema()")

    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        """All partitions as they are now. Called once for each statement, at the member that coordinates it.

        Args:
            schema: The columns of the table, with the types of its columns in SQL.
            context: The member.
        """
        raise NotImplementedError(f"{type(self).__name__} has no partitions()")

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterable[pa.RecordBatch]:
        """The rows of one partition, in batches of any size, none of them larger than fits in memory.

        The batches are taken when there is room for them. A generator is closed when no further row is wanted.

        Args:
            partition: One that :meth:`partitions` returned.
            request: The columns and rows that the statement needs.
            context: The member that reads it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no read()")

    def encoded(self) -> bytes:
        """The connector as it travels.

        Raises:
            SerializationError: It cannot be pickled.
        """
        owner = f"connector {type(self).__name__}"
        return encode(EncodedConnector(encode_portable(self, allow_code=True, owner=owner)))


class EncodedConnector(msgspec.Struct, frozen=True):
    """A connector as data or as code."""

    connector: EncodedData | EncodedCode


def connector_carries_code(data: bytes) -> bool:
    """Whether an encoded connector is code; nothing is unpickled.

    Raises:
        ProtocolError: The bytes are no connector.
    """
    return isinstance(decode(data, EncodedConnector).connector, EncodedCode)


def decode_connector(data: bytes, *, allow_code: bool, table: str) -> Connector:
    """The connector of a table.

    Raises:
        SerializationError: It is code and code is not allowed, or it does not load here.
        ProtocolError: The bytes are no connector.
        DagError: The object is no connector.
    """
    owner = f"the connector of table {table}"
    found = decode_portable(decode(data, EncodedConnector).connector, allow_code=allow_code, owner=owner)
    if not isinstance(found, Connector):
        raise DagError(f"{owner} is a {type(found).__name__}, not a secateur.connectors.Connector: derive it from that")
    return found


@contextmanager
def naming_connector(connector: Connector, table: str, doing: str, member: str) -> Iterator[None]:
    """Say whose error it is: one of user code becomes a JobFailedError with the frames of that code.

    Raises:
        Error: One of our tree, with the connector in front.
        JobFailedError: Any other.
    """
    where = f"connector {connector.title} of table {table}"
    try:
        yield
    except Error as error:
        if error.details.get("connector") == connector.title:
            raise
        details = {**error.details, "connector": connector.title, "table": table, "member": member}
        raise type(error)(f"{where}: {error.message}", **details) from error
    except Exception as error:
        raise JobFailedError(
            f"{where} failed in {doing} on member {member}: {type(error).__name__}: {error}",
            connector=connector.title,
            table=table,
            member=member,
            traceback=users_traceback(error),
        ) from error


def settled_connector(connector: Connector, table: str, context: ConnectorContext) -> Connector:
    """The connector that a table is to keep.

    Raises:
        Error: See :func:`naming_connector`.
        ProgrammingError: It is none.
    """
    with naming_connector(connector, table, "settle()", context.member):
        settled = connector.settle(context)
        if not isinstance(settled, Connector):
            raise ProgrammingError(f"settle() has to return a connector, not {settled!r}")
        return settled


def columns_of(connector: Connector, table: str, context: ConnectorContext) -> tuple[Column, ...]:
    """The columns of the table that a connector is to be, each of which may be NULL.

    Raises:
        Error: See :func:`naming_connector`; NotSupportedError for a type that has no column type.
        ProgrammingError: It has no column, or two of one name.
    """
    with naming_connector(connector, table, "schema()", context.member):
        schema = connector.schema(context)
        if not isinstance(schema, pa.Schema) or not len(schema):
            raise ProgrammingError(f"schema() has to return a pyarrow.Schema with a column, not {schema!r}")
        folded = [name.casefold() for name in schema.names]
        twice = [name for name in schema.names if folded.count(name.casefold()) > 1]
        if twice:
            raise ProgrammingError(
                f"schema() has the columns {' and '.join(twice)}: names differ in more than upper and lower case"
            )
        return tuple(Column(field.name, type_of_arrow(field.type)) for field in schema)


def partitions_of(connector: Connector, table: TableDef, context: ConnectorContext) -> list[ConnectorPartition]:
    """All partitions of a table now, with the values that they declare in their canonical form.

    Raises:
        Error: See :func:`naming_connector`.
        ProgrammingError: A partition is none, or declares values of a column that the table does not have.
        DataError: It declares a value that its column cannot hold.
    """
    types = {column.name: column.type for column in table.columns}
    with naming_connector(connector, table.name, "partitions()", context.member):
        found = []
        for partition in connector.partitions(table.arrow_schema, context):
            if not isinstance(partition, ConnectorPartition):
                raise ProgrammingError(f"partitions() has to return ConnectorPartitions, not {partition!r}")
            unknown = [name for name in partition.values if name not in types]
            if unknown:
                raise ProgrammingError(
                    f"partition {partition.key!r} declares values of {unknown[0]!r}, which is no column of the table;"
                    f" it has {', '.join(types)}"
                )
            values = {name: said.canonical(types[name], name) for name, said in partition.values.items()}
            found.append(ConnectorPartition(partition.key, values))
        keys = {partition.key for partition in found}
        if len(keys) < len(found):
            raise DataError("partitions() returned two partitions with one key: each needs a key of its own")
        return found


def needed_partitions(
    partitions: Sequence[ConnectorPartition], predicate: RowPredicate
) -> tuple[ConnectorPartition, ...]:
    """The partitions that can hold a row that is needed."""
    return tuple(partition for partition in partitions if predicate.keeps(partition.values))
