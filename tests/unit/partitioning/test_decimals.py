"""Exact arithmetic of decimals, in a decimal context that would round everything."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.partitioning.types import below_power_of_ten, fits, floored, from_unscaled, negated, rescaled, unscaled

NINES = Decimal("9" * 38)
WIDE = Decimal("-123456789012345678901234567890.12")

scales = st.integers(0, 38)
units = st.integers(1 - 10**38, 10**38 - 1)


@given(units, scales)
def test_units_and_numbers_are_one_to_one(count: int, scale: int) -> None:
    number = from_unscaled(count, scale)
    assert unscaled(number, scale) == count
    assert Fraction(number) == Fraction(count, 10**scale)
    assert number.as_tuple().exponent == -scale


@given(units, scales)
def test_negation_changes_only_the_sign(count: int, scale: int) -> None:
    assert Fraction(negated(from_unscaled(count, scale))) == -Fraction(count, 10**scale)
    assert negated(count) == -count


@given(units, scales, scales)
def test_floors_are_the_greatest_number_that_is_not_above(count: int, scale: int, wanted: int) -> None:
    number = from_unscaled(count, scale)
    floor = floored(number, wanted)
    assert floor <= number
    assert Fraction(number) - Fraction(floor) < Fraction(1, 10**wanted)
    assert floor.as_tuple().exponent == -wanted


@given(units, scales, st.integers(1, 38))
def test_what_fits_is_what_is_below_the_power_and_has_no_more_digits(count: int, scale: int, precision: int) -> None:
    number = from_unscaled(count, 38)
    exact = Fraction(count, 10**38)
    expected = (exact * 10**scale).denominator == 1 and abs(exact) * 10**scale < 10**precision
    assert fits(number, precision, scale) == expected


@pytest.mark.parametrize(
    ("value", "power", "expected"),
    [
        (NINES, 38, True),
        (NINES, 37, False),
        (Decimal(10), 1, False),
        (Decimal(0), 0, True),
        (Decimal("0.99"), 0, True),
        (-10, 1, False),
        (9, 1, True),
    ],
)
def test_below_power_of_ten(value: Decimal | int, power: int, expected: bool) -> None:
    assert below_power_of_ten(value, power) is expected


def test_zero_has_no_sign() -> None:
    for zero in (negated(Decimal("0.00")), rescaled(Decimal("-0.0"), 2), floored(Decimal("-0.0"), 2)):
        assert str(zero) == "0.00"


def test_a_number_keeps_all_its_digits_in_another_scale() -> None:
    assert str(rescaled(WIDE, 3)) == "-123456789012345678901234567890.120"
    with pytest.raises(ArithmeticError):
        rescaled(WIDE, 1)


def test_a_fraction_of_a_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 1 digits"):
        unscaled(WIDE, 1)


@pytest.mark.parametrize("value", [Decimal("1" * 90), Decimal("1E+999999"), Decimal("NaN"), Decimal("Infinity")])
def test_what_no_column_holds_raises(value: Decimal) -> None:
    with pytest.raises((ArithmeticError, ValueError)):
        unscaled(value, 2)
