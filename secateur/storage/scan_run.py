"""The columns of partitions that are scanned together, in the form in which the DuckDB kernel scans them fastest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from weakref import ref

import numpy as np
import pyarrow as pa

from secateur.storage.sorted_table import SortedTable

_SAMPLE_ROWS: Final = 2048
_SAMPLED_VALUES_MAX: Final = 256
_VALUES_MAX: Final = 1024
_INDEX: Final = pa.int16()
_DECIMALS: Final = ((9, pa.decimal32), (18, pa.decimal64))


class ScanRun:
    """The columns of some partitions that are scanned together, as far as scans have asked for them.

    The first of the partitions keeps it (``SortedRows.scan_run``). Threads that ask at one time make equal columns,
    and either may stay.

    Args:
        pieces: The rows of the partitions. They are not kept alive.
        bytes_max: A column of more bytes is not joined.
    """

    __slots__ = ("_asked", "_bytes_max", "_converted", "_joined", "_pieces", "nbytes")

    def __init__(self, pieces: Sequence[SortedTable], bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces = tuple(map(ref, pieces))
        self._asked: set[int] = set()
        self._joined: dict[int, list[pa.Array]] = {}
        self._converted: dict[int, pa.Array | None] = {}
        self.nbytes = 0
        """Bytes of the buffers that were made for scans."""

    def is_of(self, pieces: Sequence[SortedTable]) -> bool:
        """Whether it consists of these rows."""
        return len(self._pieces) == len(pieces) and all(
            known() is piece for known, piece in zip(self._pieces, pieces, strict=True)
        )

    def stored(self, pieces: Sequence[SortedTable], position: int) -> list[pa.Array]:
        """A column in its stored type: in one array once a scan has asked for it before.

        Args:
            pieces: The rows.
            position: The column.
        """
        joined = self._joined.get(position)
        if joined is not None:
            return joined
        chunks = [chunk for piece in pieces for chunk in piece.table.column(position).chunks]
        if position not in self._asked:
            self._asked.add(position)
            return chunks
        if len(chunks) > 1 and sum(chunk.nbytes for chunk in chunks) <= self._bytes_max:
            chunks = [pa.concat_arrays(chunks)]
            self.nbytes += chunks[0].get_total_buffer_size()
        self._joined[position] = chunks
        return chunks

    def converted(self, pieces: Sequence[SortedTable], position: int) -> pa.Array | None:
        """A column in converted form; None where it is to be read as it is stored, or no scan has asked for it before.

        Args:
            pieces: The rows.
            position: The column.
        """
        if position not in self._asked:
            return None
        if position not in self._converted:
            chunks = self.stored(pieces, position)
            converted = _converted(chunks[0]) if len(chunks) == 1 else None
            if converted is not None:
                self.nbytes += converted.get_total_buffer_size()
                if len(pieces) > 1 and self._joined.pop(position, None) is not None:
                    # The joined column is not read any more. If another run cannot be converted, it is joined again.
                    self.nbytes -= chunks[0].get_total_buffer_size()
            self._converted[position] = converted
        return self._converted[position]


def _converted(stored: pa.Array) -> pa.Array | None:
    kind = stored.type
    if pa.types.is_decimal128(kind):
        narrow = next((make for digits, make in _DECIMALS if kind.precision <= digits), None)
        return None if narrow is None else stored.cast(narrow(kind.precision, kind.scale))
    return _dictionary(stored) if pa.types.is_string(kind) else None


def _dictionary(texts: pa.Array) -> pa.Array | None:
    """The texts as a dictionary, if they are few different ones."""
    if len(texts) > _SAMPLE_ROWS:
        sample = texts.take(pa.array(np.linspace(0, len(texts) - 1, _SAMPLE_ROWS, dtype=np.int64)))
        if len(sample.unique()) > _SAMPLED_VALUES_MAX:
            return None
    encoded = texts.dictionary_encode()
    if len(encoded.dictionary) > _VALUES_MAX:
        return None
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(_INDEX), encoded.dictionary)
