"""Routing by key: the routing partition of each row, or its partition of a table.

Keys may be columns of any type that a join or GROUP BY may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.dag.edge import ROUTING_PARTITIONS, UnmatchedRows
from secateur.errors import DagError, DataError, NoRangeError, NotSupportedError, NullKeyError
from secateur.partitioning.schemes.hashing import SPARK_SEED, hash_columns
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.types.arrow_layout import comparable
from secateur.partitioning.types.column_type import SqlType, TypeKind, type_of_arrow
from secateur.partitioning.types.encoding import ByteKeys, EncodedColumn, WordKeys, encode_array

_BIGINT: Final = SqlType(TypeKind.BIGINT)
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)


def routing_partitions(batch: pa.RecordBatch, columns: Sequence[str], edge: str) -> npt.NDArray[np.int64]:
    """The routing partition of each row, from its key.

    Keys that SQL calls equal get the same partition: integers of every width as BIGINT, -0.0 as 0.0, every NaN as one.
    Edges whose keys are to meet in one vertex have to agree on the kind of the key (integer, float, decimal of one
    scale, string, ...): 1 and 1.0 do not meet.

    The hash is the job's own and not that of tables, which Spark prescribes: nothing outside of a job depends on it,
    and it takes a tenth of the time.

    Source: multiplicative hashing (Knuth, TAOCP 6.4), columns chained as in FxHash; reduced to the partitions by
    multiplication (Lemire, "Fast random integer generation in an interval", 2019).

    Args:
        batch: The rows.
        columns: The key columns.
        edge: Name of the edge, for messages.

    Returns:
        int64 of shape (rows,), each in ``[0, ROUTING_PARTITIONS)``. Cost: 2 ns a row for an integer column, 40 ns for a
        string of 8 bytes.

    Raises:
        DagError: A column is missing, or its type cannot be a key.
    """
    keys = [_words(_encode(_key_column(batch, name, edge), name, edge), batch.num_rows) for name in columns]
    return _reduced(keys, batch.num_rows)


def can_route(arrow: pa.DataType) -> bool:
    """Whether a column of that type can be a key of :func:`routing_partitions`.

    Lists, structs, maps and intervals cannot.
    """
    try:
        routing_partitions(pa.RecordBatch.from_arrays([pa.nulls(1, arrow)], names=["key"]), ["key"], "of a test")
    except DagError:
        return False
    return True


def scheme_partitions(
    batch: pa.RecordBatch, columns: Sequence[str], scheme: PartitionScheme, unmatched: UnmatchedRows, edge: str
) -> npt.NDArray[np.int64]:
    """Return the partition of each row under a table's scheme; -1 for rows without one, where such rows are allowed.

    ``columns`` correspond to the scheme's columns, in order.

    Raises:
        DagError: A column is missing.
        NullKeyError, NoRangeError: A row belongs to no partition of the scheme, and ``unmatched`` refuses it.
        DataError: A value that the column of the scheme cannot hold.
    """
    keys = pa.RecordBatch.from_arrays([_key_column(batch, name, edge) for name in columns], names=list(scheme.columns))
    return scheme.partitions_of(keys, unmatched_allowed=unmatched is not UnmatchedRows.REFUSE).astype(np.int64)


def table_partitions(
    batch: pa.RecordBatch, columns: Sequence[str], scheme: PartitionScheme, edge: str
) -> npt.NDArray[np.int64]:
    """Like :func:`scheme_partitions`, for rows on the way into a table.

    If some row has no partition, all rows of the batch get the first one.

    The sink computes the partition of each row again, and handles those that have none.

    Raises:
        DagError: A column is missing.
    """
    names = {name.casefold(): name for name in batch.schema.names}
    try:
        return scheme_partitions(
            batch, [names.get(name.casefold(), name) for name in columns], scheme, UnmatchedRows.REFUSE, edge
        )
    except (NullKeyError, NoRangeError, DataError):
        return np.zeros(batch.num_rows, dtype=np.int64)


def _key_column(batch: pa.RecordBatch, name: str, edge: str) -> pa.Array:
    position = batch.schema.get_field_index(name)
    if position < 0:
        raise DagError(
            f"edge {edge} is partitioned by {name!r}, but the batch has the columns"
            f" {', '.join(map(repr, batch.schema.names)) or 'none'}"
        )
    return batch.column(position)


def _encode(array: pa.Array, name: str, edge: str) -> EncodedColumn:
    arrow = array.type
    if pa.types.is_dictionary(arrow):
        array = array.dictionary_decode()
        arrow = array.type
    if pa.types.is_floating(arrow):
        return encode_array(comparable(array), _BIGINT)
    if pa.types.is_time(arrow) or pa.types.is_duration(arrow):
        return encode_array(array.cast(pa.int64() if arrow.bit_width == 64 else pa.int32()).cast(pa.int64()), _BIGINT)
    if pa.types.is_null(arrow):
        return encode_array(pa.nulls(len(array), pa.int64()), _BIGINT)
    try:
        sql_type = type_of_arrow(arrow)
    except NotSupportedError:
        sql_type = None
    if sql_type is None or not sql_type.can_partition:
        raise DagError(
            f"edge {edge} is partitioned by {name!r} of type {arrow}, which cannot be a key; cast it to a type that"
            " can, such as VARCHAR"
        )
    # Instants of any unit meet as microseconds: what a cast cuts off is the same for equal ones.
    return encode_array(
        array if arrow == sql_type.arrow else array.cast(sql_type.arrow, safe=not pa.types.is_timestamp(arrow)),
        sql_type,
    )


def _words(column: EncodedColumn, rows: int) -> npt.NDArray[np.uint64]:
    """One word for each row; 0 where it is NULL."""
    match column:
        case WordKeys(words, valid):
            whole = words.astype(np.uint64, copy=False)
        case ByteKeys(_, _, _, valid):
            whole = hash_columns([column], SPARK_SEED, rows)
        case _:
            assert_never(column)
    return whole if valid is None else np.where(valid, whole, np.uint64(0))


def _reduced(keys: Sequence[npt.NDArray[np.uint64]], rows: int) -> npt.NDArray[np.int64]:
    """The routing partitions of some rows, of a word for each row from each key column."""
    out = np.empty(rows, dtype=np.uint64)
    scratch = np.empty_like(out)
    for index, words in enumerate(keys):
        # High bits are shifted down first: small whole numbers differ only in these bits of a DOUBLE's word, and
        # multiplying only moves bits up.
        np.right_shift(words, _HALF, out=scratch)
        np.bitwise_xor(words, scratch, out=scratch)
        if index:
            np.bitwise_xor((out << np.uint64(5)) | (out >> np.uint64(59)), scratch, out=scratch)
        np.multiply(scratch, _GOLDEN, out=out)
    np.right_shift(out, _HALF, out=out)
    np.multiply(out, np.uint64(ROUTING_PARTITIONS), out=out)
    np.right_shift(out, _HALF, out=out)
    return out.view(np.int64)
