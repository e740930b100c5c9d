from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from secateur.engine.kernels.arrow import InexactError, held_by_double, to_double


def decimals(*values: str | None, precision: int = 38, scale: int = 4) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(precision, scale))


def test_each_decimal_becomes_the_nearest_double() -> None:
    texts = ["0", "0.1", "-0.1", "1234.5678", "-99999999.9999", "900719925474.0992"]
    assert to_double(decimals(*texts)).to_pylist() == [float(text) for text in texts]


def test_null_stays_null_and_slices_and_chunks_keep_their_place() -> None:
    array = decimals("1", None, "-2.5", "3")
    assert to_double(array.slice(1, 2)).to_pylist() == [None, -2.5]
    assert to_double(pa.chunked_array([array, array.slice(2)])).to_pylist() == [1.0, None, -2.5, 3.0, -2.5, 3.0]
    assert to_double(decimals()).to_pylist() == []


@pytest.mark.parametrize("integer", [2**53 + 1, -(2**53) - 1, 2**63, -(2**64), 10**30], ids=str)
def test_more_digits_than_a_double_has_are_refused(integer: int) -> None:
    with pytest.raises(InexactError):
        to_double(decimals("0", str(integer), scale=0))


def test_integers_up_to_two_to_the_53() -> None:
    assert held_by_double(np.array([2**53, -(2**53)])).tolist() == [2.0**53, -(2.0**53)]
    assert held_by_double(np.array([], np.int64)).tolist() == []
    with pytest.raises(InexactError):
        held_by_double(np.array([2**53 + 1], np.uint64))
