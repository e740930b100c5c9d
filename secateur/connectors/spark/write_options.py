"""The options by which the format ``secateur`` is written, their load, and the table that is created for it.

================  ======================================================================================
option            meaning
================  ======================================================================================
address, token    of the cluster; tlsCa and tlsServerName as for reads
table             the table; or the name in ``save(...)``
operation         ``upsert`` or ``delete``, with ``.mode("append")``; by default rows are appended
overwriteScope    ``table``, or ``partitions``: only range partitions that get a row are overwritten
createTable       ``true`` creates the table, if there is none, with the columns of the DataFrame and
primaryKey        the names of the columns of its key, divided by commas (none: without a primary key),
partitionBy       the text behind PARTITION BY,
backups           the number of backups, and
changeFeed        ``true`` for a table that keeps its last changes for those who follow them
missing           ``null`` for NULL in columns of the table that the DataFrame lacks; by default an upsert
                  keeps their values in rows that are there, and everything else refuses
chunk_bytes       Arrow bytes that a task gathers before it sends; by default 32 MiB
load_id           a name for the load, never used before; by default a new one
report            a file on the driver's machine for a report of the published rows, as JSON
================  ======================================================================================

A stream has the options ``address`` to ``table``, ``createTable`` and those of the new table, ``missing``,
``chunk_bytes``, and these:

================  ======================================================================================
mode              ``append`` (the default), ``upsert`` or ``delete``, with Spark's output mode ``append``
streamId          the name under which the table keeps the stream's last batch; by default the id of the
                  query, which Spark keeps in its checkpoint
================  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from pyspark.sql.types import StructType

from secateur.client.connect import connect
from secateur.client.loads.create_table import create_table_sql, dropped_on_failure
from secateur.client.session import Session
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.read_options import positive
from secateur.connectors.spark.schema import check_columns, column_type
from secateur.connectors.spark.staging import CHUNK_BYTES
from secateur.connectors.spark.writer import LoadWriter, StreamWriter, WriteMode
from secateur.errors import ProgrammingError, TableExistsError, UnknownTableError
from secateur.partitioning.tables.conform import MissingColumns
from secateur.partitioning.tables.table import Column, TableDef

_DEFAULT: Final = "CURRENT_DEFAULT"
_COMMENT: Final = "comment"
"""Where Spark keeps the DEFAULT, as SQL, and the comment of a column: among the metadata of its field."""

_TABLE: Final = ("primaryKey", "partitionBy", "backups", "changeFeed")
_OPTIONS: Final = (
    *("address", "token", "tlsCa", "tlsServerName", "table", "operation", "overwriteScope", "createTable"),
    *_TABLE,
    *("missing", "chunk_bytes", "load_id", "report"),
)
_STREAM_OPTIONS: Final = (
    *("address", "token", "tlsCa", "tlsServerName", "table", "mode", "streamId", "createTable"),
    *_TABLE,
    *("missing", "chunk_bytes"),
)
_OF_SPARK: Final = ("checkpointLocation", "queryName")


@dataclass(frozen=True, slots=True)
class NewTable:
    """The facts about a table that the columns of a DataFrame do not say.

    Attributes:
        primary_key: The names of the columns of its key; none for a table without one.
        partition_by: The text behind PARTITION BY; None for the default.
        backups: Copies beside the primary; None for the default.
        change_feed: Whether the table keeps its last changes for those who follow them.
    """

    primary_key: tuple[str, ...]
    partition_by: str | None = None
    backups: int | None = None
    change_feed: bool = False

    def check(self, table: TableDef) -> None:
        """Check that a table has the primary key, and the change feed, that it would have been created with.

        Raises:
            ProgrammingError: It has another, or none.
        """
        if [name.casefold() for name in self.primary_key] != [name.casefold() for name in table.declared_key]:
            raise ProgrammingError(
                f"table {table.name} is there already, with the primary key ({', '.join(table.declared_key) or 'none'})"
                f" and not ({', '.join(self.primary_key) or 'none'}): leave out createTable, or name the same columns",
                table=table.name,
            )
        if self.change_feed and not table.change_feed:
            raise ProgrammingError(
                f"table {table.name} is there already, without the change feed that is asked for: leave changeFeed"
                " out, or drop the table first",
                table=table.name,
            )


def found_or_created(
    session: Session, endpoint: Endpoint, name: str, schema: StructType, new: NewTable | None
) -> tuple[TableDef, bool]:
    """Return a table, which is created with the columns of a DataFrame if there is none and ``new`` says how.

    Only the columns of the key are NOT NULL: which columns Spark calls nullable depends on how they were computed.

    Returns:
        The table, and whether it was created: then it is to be dropped if the load fails
        (:func:`~secateur.client.loads.create_table.drop_unused`).

    Raises:
        UnknownTableError: There is no such table, and ``new`` is None.
        ProgrammingError: The table has another primary key or lacks the change feed, or the key names a column that the
            DataFrame does not have.
        DataError: No column can hold the values of a column of the DataFrame.
        Error: The cluster refuses the definition, such as its PARTITION BY, or cannot be reached.
    """
    try:
        table = session.table(name)
    except UnknownTableError:
        if new is None:
            raise
        try:
            _create(endpoint, name, schema, new)
            return session.table(name), True
        except TableExistsError:  # another load has created it meanwhile
            table = session.table(name)
    if new is not None:
        new.check(table)
    return table, False


def _create(endpoint: Endpoint, name: str, schema: StructType, new: NewTable) -> None:
    names = {field.name.casefold() for field in schema.fields}
    missing = [column for column in new.primary_key if column.casefold() not in names]
    if missing:
        raise ProgrammingError(
            f"primaryKey names {missing[0]!r}, which is not a column of the DataFrame; it has"
            f" {', '.join(schema.fieldNames()) or 'no columns'}"
        )
    columns = [
        Column(
            field.name,
            column_type(field.dataType, column=field.name),
            default=field.metadata.get(_DEFAULT),
            comment=field.metadata.get(_COMMENT),
        )
        for field in schema.fields
    ]
    sql = create_table_sql(
        name,
        columns,
        primary_key=new.primary_key,
        partition_by=new.partition_by,
        backups=new.backups,
        change_feed=new.change_feed,
    )
    with connect(endpoint.address, endpoint.token or "", tls=endpoint.tls) as connection:
        connection.execute(sql).close()


def load_writer(
    options: Mapping[str, str],
    schema: StructType,
    *,
    overwrite: bool,
    ignored: Collection[str] = (),
) -> LoadWriter:
    """Prepare a load: find or create the table, with all its ranges and owners, and check that the columns fit.

    This is done once, by the driver; the tasks get all of it with the writer.

    Args:
        options: By their names in small letters, as Spark passes them on.
        schema: The columns of the DataFrame.
        overwrite: Whether Spark's save mode is ``overwrite``.
        ignored: Further options, in small letters, which do not matter.

    Raises:
        ProgrammingError: An option is missing, unknown, or contradicts Spark's save mode or the table.
        UnknownTableError: There is no such table.
        UnreachableError: The cluster cannot be reached at the address.
        AuthenticationError: The token is missing or wrong.
        Error: As ``check_columns`` and ``found_or_created``.
    """
    unknown = sorted(options.keys() - {name.casefold() for name in _OPTIONS} - set(ignored))
    if unknown:
        raise ProgrammingError(
            f"format secateur has no option {', '.join(unknown)} to write with; it has {', '.join(_OPTIONS)}"
        )
    mode = WriteMode.of_options(options.get("operation"), options.get("overwritescope"), overwrite=overwrite)
    return _load(options, schema, mode)


def stream_writer(options: Mapping[str, str], schema: StructType, *, complete: bool) -> StreamWriter:
    """Prepare to write the next batch of a stream, as :func:`load_writer` prepares a load.

    Args:
        options: By their names in small letters, as Spark passes them on; those of Spark are ignored.
        schema: The columns of the DataFrame.
        complete: Whether Spark's output mode is ``complete``.

    Raises:
        ProgrammingError: An option is missing, unknown, or contradicts Spark's output mode or the table.
        Error: As :func:`load_writer`.
    """
    unknown = sorted(options.keys() - {name.casefold() for name in (*_STREAM_OPTIONS, *_OF_SPARK)})
    if unknown:
        raise ProgrammingError(
            f"format secateur has no option {', '.join(unknown)} to write a stream with; it has"
            f" {', '.join(_STREAM_OPTIONS)}"
        )
    mode = WriteMode.of_stream(options.get("mode"), complete=complete)
    return StreamWriter(_load(options, schema, mode), options.get("streamid"))


def _load(options: Mapping[str, str], schema: StructType, mode: WriteMode) -> LoadWriter:
    chunk_bytes = positive("chunk_bytes", options.get("chunk_bytes", str(CHUNK_BYTES)))
    name = options.get("table")
    if not name:
        raise ProgrammingError(
            "format secateur needs the option 'table': .option(\"table\", ...). INSERT INTO a table of Spark's catalog"
            " has no options, since Spark does not pass on those of the table: INSERT INTO ... WITH ('address' = '...',"
            " 'table' = '...') gives them, or INSERT INTO a temporary view that was created USING secateur, or df.write"
        )
    endpoint = Endpoint.of_options(options)
    new = _new_table(options)
    with endpoint.session() as session:
        table, is_new = found_or_created(session, endpoint, name, schema, new)
        with dropped_on_failure(session, table) if is_new else nullcontext():
            topology = session.topology_of(table)
            mode.check(table)
            missing = MissingColumns.of_load(options.get("missing"), is_upsert=mode is WriteMode.UPSERT)
            check_columns(schema, table, missing, keys_only=mode is WriteMode.DELETE)
    load_id, report = options.get("load_id", uuid4().hex), options.get("report")
    return LoadWriter(table, topology, endpoint, load_id, mode, chunk_bytes, report, missing, is_new)


def _new_table(options: Mapping[str, str]) -> NewTable | None:
    if not _flag("createTable", options):
        given = [option for option in _TABLE if option.casefold() in options]
        if given:
            raise ProgrammingError(
                f'option {given[0]} is for a table that is created: add .option("createTable", "true"), or leave it out'
            )
        return None
    key = options.get("primarykey")
    backups = options.get("backups")
    if backups is not None and not backups.isdecimal():
        raise ProgrammingError(f"option backups={backups!r}: expected a whole number")
    return NewTable(
        tuple(name.strip() for name in key.split(",")) if key else (),
        options.get("partitionby"),
        None if backups is None else int(backups),
        _flag("changeFeed", options),
    )


def _flag(option: str, options: Mapping[str, str]) -> bool:
    match options.get(option.casefold(), "false").strip().lower():
        case "true":
            return True
        case "false":
            return False
        case other:
            raise ProgrammingError(f"option {option}={other!r}: expected true or false")
