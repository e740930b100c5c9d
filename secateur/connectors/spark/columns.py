"""The partition function as a Spark column, which computes the same ids as those over Python values and Arrow batches.

Built from Spark's built-ins only, so it runs inside Spark's generated code and needs neither a UDF nor a Python
process. Each column type is converted to the form that ``xxhash64`` must hash:

======================  =====================================================================================
type                    in Spark
======================  =====================================================================================
integers to 8 bytes     ``CAST(c AS BIGINT)``: Spark hashes an INT as 4 bytes, secateur every integer as 8
UBIGINT                 ``CAST(c AS DECIMAL(20,0))``, less 2^64 if it passes the BIGINT range, then as BIGINT
VARCHAR, BOOLEAN, BLOB  ``CAST(c AS STRING | BOOLEAN | BINARY)``
DATE                    ``CAST(c AS DATE)``
TIMESTAMP, TIMESTAMPTZ  as it is
DECIMAL(p, s)           ``CAST(c AS DECIMAL(p, s))``: the hash is that of the unscaled integer
UUID                    ``LOWER(CAST(c AS STRING))``
======================  =====================================================================================

Spark has no unsigned types. TIMESTAMP and TIMESTAMP_NTZ both hash as their microseconds; a cast would move the value by
the session's time zone.

Source: Apache Spark ``XxHash64`` and ``HashExpression``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark program gives it)

from secateur.errors import InternalError
from secateur.partitioning.schemes.components import HashComponent, RangePartition
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.types.column_type import SqlType, TypeKind

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BIGINT_LIMIT: Final = "CAST(9223372036854775808 AS DECIMAL(20,0))"
_UBIGINT_SPAN: Final = "CAST(18446744073709551616 AS DECIMAL(20,0))"


def partition_id(scheme: PartitionScheme) -> Column:
    """The partition of each row of a DataFrame whose columns carry the names of the scheme.

    Args:
        scheme: The table's scheme. Its columns must have the Spark types that the table's columns are written from: see
            the module's table. UUIDs are text of 8-4-4-4-12 hexadecimal digits.

    Returns:
        An INT column. NULL where no range covers the row, or a range column is NULL. A NULL in a hash column leaves the
        hash unchanged.
        Cost: one ``xxhash64`` for each hash component and, for n ranges, log2(n) comparisons.
    """
    types = dict(scheme.types)
    if scheme.range is None:
        return _bucket(scheme.hashes, types).cast("int")
    keys = [(F.col(_quoted(name)), types[name]) for name in scheme.range.columns]
    if any(partition.hashes is not None for partition in scheme.ranges()):
        found = _search(
            scheme.ranges(),
            keys,
            lambda partition: _base(scheme, partition) + _bucket(scheme.hashes_of(partition.ordinal), types),
        )
    else:
        # The hash is the same in every range: outside the search it is generated and computed only once.
        found = _search(scheme.ranges(), keys, lambda partition: _base(scheme, partition)) + _bucket(
            scheme.hashes, types
        )
    complete = reduce(and_, (column.isNotNull() for column, _ in keys))
    return F.when(complete, found).cast("int")


def _base(scheme: PartitionScheme, partition: RangePartition) -> Column:
    return F.lit(scheme.block(partition.ordinal).start).cast("bigint")


def _bucket(hashes: Sequence[HashComponent], types: dict[str, SqlType]) -> Column:
    """The mixed radix of the buckets of hash components, a BIGINT."""
    result = F.lit(0).cast("bigint")
    for component in hashes:
        seed = [F.lit(component.seed).cast("bigint")] if component.seed else []
        state = F.xxhash64(*seed, *(_canonical(F.col(_quoted(name)), types[name]) for name in component.columns))
        result = result * F.lit(component.partitions).cast("bigint") + F.pmod(
            state, F.lit(component.partitions).cast("bigint")
        )
    return result


def _canonical(column: Column, type_: SqlType) -> Column:
    """The column in the form that hashes as the partition function does."""
    match type_.kind:
        case TypeKind.UBIGINT:
            wide = column.cast("decimal(20,0)")
            return F.when(wide >= F.expr(_BIGINT_LIMIT), wide - F.expr(_UBIGINT_SPAN)).otherwise(wide).cast("bigint")
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return column
        case _ if type_.is_integer:
            return column.cast("bigint")
        case _:
            return _comparable(column, type_)


def _comparable(column: Column, type_: SqlType) -> Column:
    """The column in a type whose order is that of the range component."""
    match type_.kind:
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return column
        case TypeKind.DECIMAL:
            return column.cast(f"decimal({type_.precision},{type_.scale})")
        case TypeKind.VARCHAR:
            return column.cast("string")
        case TypeKind.UUID:
            return F.lower(column.cast("string"))
        case TypeKind.BLOB:
            return column.cast("binary")
        case TypeKind.BOOLEAN:
            return column.cast("boolean")
        case TypeKind.DATE:
            return column.cast("date")
        case _ if type_.is_integer:
            return column.cast("decimal(20,0)" if type_.kind is TypeKind.UBIGINT else "bigint")
        case _:
            raise InternalError(
                f"a column of type {type_} was about to partition a table; its scheme should have been refused"
            )


def _search(
    ranges: Sequence[RangePartition], keys: Sequence[tuple[Column, SqlType]], found: Callable[[RangePartition], Column]
) -> Column:
    """Build a balanced tree of comparisons with the lower bounds, as nested CASE expressions.

    Each leaf checks the bounds that the path to it has not checked.
    """

    def subtree(start: int, stop: int) -> Column:
        if stop - start > 1:
            middle = (start + stop) // 2
            return F.when(_less(keys, ranges[middle].lower or ()), subtree(start, middle)).otherwise(
                subtree(middle, stop)
            )
        partition = ranges[start]
        # The path has compared with the lower bound of this range, unless it is the first, and with that of the next,
        # unless it is the last.
        touches_next = start + 1 < len(ranges) and partition.upper == ranges[start + 1].lower
        result = found(partition)
        if partition.upper is not None and not touches_next:
            result = F.when(_less(keys, partition.upper), result)
        if start == 0 and partition.lower is not None:
            result = F.when(~_less(keys, partition.lower), result)
        return result

    return subtree(0, len(ranges)) if ranges else F.lit(None).cast("bigint")


def _less(keys: Sequence[tuple[Column, SqlType]], bound: Sequence[Any]) -> Column:
    """Whether the key is lexicographically less than a bound."""
    (column, type_), value = keys[-1], bound[-1]
    result = _compare(column, "<", value, type_)
    for (column, type_), value in zip(reversed(keys[:-1]), reversed(bound[:-1]), strict=True):
        result = _compare(column, "<", value, type_) | (_compare(column, "=", value, type_) & result)
    return result


def _compare(column: Column, operator: str, value: Any, type_: SqlType) -> Column:
    def apply(literal: str) -> Column:
        comparable, bound = _comparable(column, type_), F.expr(literal)
        return comparable < bound if operator == "<" else comparable == bound

    if type_.kind not in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ):
        return apply(_literal(value, type_))
    # The column may have either timestamp type, and comparing one with the other would shift it by the session's time
    # zone. ``typeof`` is known at planning: the branch that does not apply never runs.
    aware = value.replace(tzinfo=UTC)
    since = aware - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    zoneless = apply(f"TIMESTAMP_NTZ'{aware.replace(tzinfo=None).isoformat(sep=' ')}'")
    return F.when(F.typeof(column) == "timestamp_ntz", zoneless).otherwise(
        apply(f"TIMESTAMP_MICROS(CAST('{micros}' AS BIGINT))")
    )


def _literal(value: Any, type_: SqlType) -> str:
    """SQL text of a canonical value.

    Nothing goes through Python's or Java's calendars, quoting or default time zones.
    """
    match type_.kind:
        case TypeKind.VARCHAR:
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case TypeKind.BLOB:
            return f"X'{value.hex()}'"
        case TypeKind.UUID:
            return f"'{value}'"
        case TypeKind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case TypeKind.DATE:
            return f"DATE_FROM_UNIX_DATE({value.toordinal() - _EPOCH_DAY})"
        case TypeKind.DECIMAL:
            return f"CAST('{value:f}' AS DECIMAL({type_.precision},{type_.scale}))"
        case _ if type_.is_integer:
            return f"CAST('{value}' AS {'DECIMAL(20,0)' if type_.kind is TypeKind.UBIGINT else 'BIGINT'})"
        case _:
            raise InternalError(
                f"a column of type {type_} was about to partition a table by range; its scheme should have been refused"
            )


def _quoted(name: str) -> str:
    """A column name that may have dots or spaces in it."""
    return "`" + name.replace("`", "``") + "`"
