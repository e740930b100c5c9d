"""Tables that are created for a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import StructType

from secateur.client.connect import connect
from secateur.client.loads.create_table import create_table_sql
from secateur.client.session import Session
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.schema import column_type
from secateur.errors import ProgrammingError, TableExistsError, UnknownTableError
from secateur.partitioning.tables.table import Column, TableDef

_DEFAULT: Final = "CURRENT_DEFAULT"
_COMMENT: Final = "comment"
"""Where Spark keeps the DEFAULT, as SQL, and the comment of a column: among the metadata of its field."""


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
