"""Decides from the two schemas whether a DataFrame fits a table, before Spark computes a single row."""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
)

from secateur.errors import DataError, NotSupportedError, NullKeyError
from secateur.partitioning.tables.conform import MissingColumns, conform
from secateur.partitioning.tables.row_ids import check_writable
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.arrow_layout import empty_table, map_leaf_types
from secateur.partitioning.types.column_type import SqlType, TypeKind, type_of_arrow

_PLAIN: dict[type[DataType], pa.DataType] = {
    BooleanType: pa.bool_(),
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    BinaryType: pa.binary(),
    DateType: pa.date32(),
    TimeType: pa.time64("ns"),
    TimestampType: pa.timestamp("us", "UTC"),
    TimestampNTZType: pa.timestamp("us"),
    DayTimeIntervalType: pa.duration("us"),
    NullType: pa.null(),
}


def keys_of(table: TableDef) -> TableDef:
    """A table with the columns of the primary key alone, in key order: that of keys to delete."""
    return replace(table, columns=tuple(table.column(name) for name in table.primary_key))


def check_columns(
    schema: StructType,
    table: TableDef,
    missing: MissingColumns = MissingColumns.NULL,
    *,
    keys_only: bool = False,
) -> None:
    """Check that rows of a DataFrame can become rows of a table.

    The rules and messages are the same as for any Arrow data that is loaded.

    The tasks check values later, such as a number too large for its column, or a NULL in a key. A key column that may
    be NULL for all that Spark knows is no mistake: so is every column that Spark reads from a file.

    Args:
        schema: The DataFrame's.
        table: The table.
        missing: The treatment of columns of the table that the DataFrame lacks.
        keys_only: Whether rows are keys to delete; other columns may be there, and do not matter.

    Raises:
        UnknownColumnError: A column that the table does not have.
        NullKeyError: A NOT NULL column of the table is missing.
        DataError: A column is given twice, is missing where that is refused, or has a type that does not convert to the
            column's.
    """
    if keys_only:
        table = keys_of(table)
    known = {column.name.casefold() for column in table.columns}
    fields = [
        pa.field(field.name, arrow_type(field.dataType, column=field.name))
        for field in schema.fields
        if not keys_only or field.name.casefold() in known
    ]
    for field in fields:
        column = next((column for column in table.columns if column.name.casefold() == field.name.casefold()), None)
        if column is not None and not column.nullable and pa.types.is_null(field.type):
            raise NullKeyError(
                f"table {table.name}: column {column.name} is NOT NULL, and the DataFrame has only NULLs there",
                table=table.name,
                column=column.name,
            )
        if (
            column is not None
            and column.name in table.scheme.columns
            and pa.types.is_string(field.type)
            and column.type.kind not in (TypeKind.VARCHAR, TypeKind.UUID)
        ):
            # Spark computes the partition of the text, and its casts read texts in other ways than ours.
            raise DataError(
                f"column {column.name}: it is a part of the partitioning key, so texts are not converted to"
                f" {column.type}: cast the column of the DataFrame",
                column=column.name,
            )
    given_schema = pa.schema(fields)
    check_writable(given_schema, table)
    conform(empty_table(given_schema), table)
    given = {field.name.casefold() for field in schema.fields}
    plain = [
        column for column in table.visible_columns if column.name.casefold() not in given and column.default is None
    ]
    lacking = [column.name for column in plain if not column.nullable]
    if lacking:
        raise NullKeyError(
            f"table {table.name}: the DataFrame lacks {', '.join(lacking)}, which must not be NULL; it has"
            f" {', '.join(schema.fieldNames()) or 'no columns'}",
            table=table.name,
            column=lacking[0],
        )
    absent = [column.name for column in plain]
    if absent and missing is MissingColumns.REFUSED and not keys_only:
        raise DataError(
            f"table {table.name}: the DataFrame lacks {', '.join(absent)}: give the columns, or pass missing='null' to"
            " have NULL there",
            table=table.name,
            column=absent[0],
        )


def arrow_type(spark_type: DataType, *, column: str) -> pa.DataType:
    """Return the Arrow type in which Spark passes values of a type to Python, for a column that the error names.

    A TIMESTAMP of Spark is an instant: it arrives in UTC for any time zone of the session, and a column without time
    zone gets it in UTC.

    Raises:
        DataError: No column type of ours holds such values.
    """
    match spark_type:
        case StringType() | CharType() | VarcharType():
            return pa.string()
        case DecimalType():
            return pa.decimal128(spark_type.precision, spark_type.scale)
        case ArrayType():
            return pa.list_(arrow_type(spark_type.elementType, column=column))
        case MapType():
            return pa.map_(
                arrow_type(spark_type.keyType, column=column), arrow_type(spark_type.valueType, column=column)
            )
        case StructType():
            return pa.struct(
                [
                    pa.field(field.name, arrow_type(field.dataType, column=f"{column}.{field.name}"))
                    for field in spark_type.fields
                ]
            )
        case _ if type(spark_type) in _PLAIN:
            return _PLAIN[type(spark_type)]
        case _:
            raise DataError(
                f"column {column}: a table column cannot hold {spark_type.simpleString()}; leave it out, or cast it"
                " to a string",
                column=column,
            )


def column_type(spark_type: DataType, *, column: str) -> SqlType:
    """Return the type of a column that holds every value of a Spark type.

    Raises:
        DataError: No column type of ours holds such values.
    """
    try:
        return type_of_arrow(map_leaf_types(arrow_type(spark_type, column=column), _of_column))
    except NotSupportedError as error:
        raise DataError(
            f"column {column}: a table column cannot hold {spark_type.simpleString()}: {error.message}", column=column
        ) from error


def _of_column(kind: pa.DataType) -> pa.DataType:
    """Times of day and intervals as columns have them; Spark's times have nanoseconds as zeros."""
    if pa.types.is_duration(kind):
        return pa.month_day_nano_interval()
    return pa.time64("us") if kind == pa.time64("ns") else kind
