"""Whether a DataFrame fits a table, decided from the two schemas before Spark computes a single row."""

from __future__ import annotations

import pyarrow as pa
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
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
)

from secateur.errors import DataError, NullKeyError
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.empty_rows import empty_table

__all__ = ["arrow_type", "check_columns"]

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


def check_columns(schema: StructType, table: TableDef) -> None:
    """Check that rows of a DataFrame can become rows of a table.

    The rules and messages are the same as for any Arrow data that is loaded.

    The tasks check values later, such as a number too large for its column.

    Args:
        schema: The DataFrame's.
        table: The table.

    Raises:
        UnknownColumnError: A column that the table does not have.
        NullKeyError: A NOT NULL column of the table is missing.
        DataError: A column is given twice, or has a type that does not convert to the column's.
    """
    fields = [pa.field(field.name, arrow_type(field.dataType, column=field.name)) for field in schema.fields]
    conform(empty_table(pa.schema(fields)), table)
    given = {field.name.casefold() for field in schema.fields}
    missing = [column.name for column in table.columns if not column.nullable and column.name.casefold() not in given]
    if missing:
        raise NullKeyError(
            f"table {table.name}: the DataFrame lacks {', '.join(missing)}, which must not be NULL; it has"
            f" {', '.join(schema.fieldNames()) or 'no columns'}",
            table=table.name,
            column=missing[0],
        )


def arrow_type(spark_type: DataType, *, column: str) -> pa.DataType:
    """Return the Arrow type in which Spark passes values of a type to Python.

    A TIMESTAMP of Spark is an instant: it arrives in UTC for any time zone of the session, and a column without time
    zone gets it in UTC.

    Args:
        spark_type: The type.
        column: The column's name, for the message.

    Raises:
        DataError: No column type of ours holds such values, as for maps and structs.
    """
    match spark_type:
        case StringType() | CharType() | VarcharType():
            return pa.string()
        case DecimalType():
            return pa.decimal128(spark_type.precision, spark_type.scale)
        case ArrayType():
            return pa.list_(arrow_type(spark_type.elementType, column=column))
        case _ if type(spark_type) in _PLAIN:
            return _PLAIN[type(spark_type)]
        case _:
            raise DataError(
                f"column {column}: a table column cannot hold {spark_type.simpleString()}; select its parts as columns"
                " of their own, or cast it to a string",
                column=column,
            )
