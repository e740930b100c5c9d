"""The schema of a query in Spark.

=========================================  ===============================================
secateur                                   Spark
=========================================  ===============================================
BOOLEAN, VARCHAR, BLOB, DATE, DECIMAL      the same
TINYINT, SMALLINT, INTEGER, BIGINT         the same
UTINYINT, USMALLINT, UINTEGER              the next larger signed type
UBIGINT, HUGEINT                           DECIMAL(20,0), DECIMAL(38,0)
FLOAT, DOUBLE                              the same
TIMESTAMP, TIMESTAMP WITH TIME ZONE        TIMESTAMP_NTZ, TIMESTAMP
TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS    TIMESTAMP_NTZ; one of a fraction of a microsecond is refused
TIME                                       TIME, which ``spark.sql.timeType.enabled`` allows
UUID, JSON, ENUM                           STRING
lists of any and of a fixed length         ARRAY
STRUCT, MAP                                STRUCT, MAP
INTERVAL                                   INTERVAL DAY TO SECOND, of 24 hours a day; a value with months is refused,
                                           because an interval of Spark has either months or days
=========================================  ===============================================
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from secateur.engine.kernels.duckdb.result_types import arrow_type
from secateur.errors import NotSupportedError
from secateur.protocol.statements import ResultColumn

_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def spark_schema(columns: Sequence[ResultColumn], never_null: Set[str] = frozenset()) -> StructType:
    """The columns of a query as Spark names their types.

    Args:
        columns: The columns.
        never_null: The folded names of those that are never NULL: Spark spares itself a look at each value of them,
            and reads rows of such columns in three quarters of the time.

    Raises:
        NotSupportedError: Spark has no type for a column.
    """
    return StructType(
        [
            StructField(
                column.name,
                from_arrow_type(_spark_arrow(arrow_type(column.type), column)),
                nullable=column.name.casefold() not in never_null,
            )
            for column in columns
        ]
    )


def _spark_arrow(kind: pa.DataType, column: ResultColumn, *, is_part: bool = False) -> pa.DataType:
    """The Arrow type of the Spark type that holds every value of an Arrow type."""
    part = partial(_spark_arrow, column=column, is_part=True)
    if kind in _WIDER:
        return _WIDER[kind]
    if kind == pa.uuid() and not is_part:
        return pa.string()
    if pa.types.is_interval(kind):
        return pa.duration("us")
    if kind == pa.uuid():
        raise NotSupportedError(
            f"column {column.name!r} is of type {column.type}, which Spark does not have: name other columns, or read"
            f" a query that casts it to VARCHAR",
            column=column.name,
        )
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(part(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(part(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(part(kind.key_type), part(kind.item_type))
    return kind
