"""Exact arithmetic of decimals.

Python rounds the result of almost every operation on a ``Decimal``, unary minus and ``abs`` among them, to the digits
of the running thread's decimal context: 28 by default. A DECIMAL has up to 38. All arithmetic on a ``Decimal`` is
therefore done here, in ways whose results do not depend on any context; comparisons, ``int(value)`` and ``str(value)``
are exact in Python itself.

``tests/unit/test_decimals_are_exact.py`` checks that other modules do no such arithmetic, and all tests run in a
context in which an inexact operation raises.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Final, overload

DOUBLE_INTEGER_MAX: Final = 2**53
"""Every integer up to here is a DOUBLE; one more, and it is rounded to this one."""
FLOAT_INTEGER_MAX: Final = 2**24
"""The same of a FLOAT."""

# More than twice the digits of any DECIMAL: a result that would still be rounded is no column's value, and raises.
_EXACT: Final = Context(prec=80, traps=[InvalidOperation, Inexact, Overflow])
_FLOOR: Final = Context(prec=80, rounding=ROUND_FLOOR, traps=[InvalidOperation, Overflow])


@overload
def negated(value: int) -> int: ...
@overload
def negated(value: Decimal) -> Decimal: ...
@overload
def negated(value: int | Decimal | float) -> int | Decimal | float: ...
def negated(value: int | Decimal | float) -> int | Decimal | float:
    """The number with the other sign; a Decimal's zero has none."""
    if not isinstance(value, Decimal):
        return -value
    return value.copy_negate() if value else value.copy_abs()


def added(one: Decimal, other: Decimal) -> Decimal:
    """The sum of two finite numbers of up to 38 digits, none of which is lost."""
    return _EXACT.add(one, other)


def fits(value: Decimal | int, precision: int, scale: int) -> bool:
    """Whether a finite number is a value of DECIMAL(precision, scale) without rounding."""
    return below_power_of_ten(value, precision - scale) and _has_scale(value, scale)


def below_power_of_ten(value: Decimal | int, power: int) -> bool:
    """Whether a finite number has an absolute value below ``10**power``: at most ``power`` digits before the point."""
    if isinstance(value, int):
        return -(10**power) < value < 10**power
    return not value or value.adjusted() < power


def _has_scale(value: Decimal | int, scale: int) -> bool:
    """Whether a finite number has at most ``scale`` digits after the point, not counting trailing zeros."""
    if isinstance(value, int):
        return True
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    surplus = -exponent - scale
    return surplus <= 0 or not any(digits[-surplus:])


def rescaled(value: Decimal, scale: int) -> Decimal:
    """The same number with exactly ``scale`` digits behind the point, which is how a column has it; never minus zero.

    Raises:
        ArithmeticError: It has more digits behind the point, or is too large for any DECIMAL.
    """
    found = value.quantize(Decimal((0, (1,), -scale)), context=_EXACT)
    return found if found else found.copy_abs()


def floored(value: Decimal | int, scale: int) -> Decimal:
    """The greatest number with ``scale`` digits behind the point that is not above a finite number.

    Raises:
        ArithmeticError: It is too large for any DECIMAL.
    """
    found = Decimal(value).quantize(Decimal((0, (1,), -scale)), context=_FLOOR)
    return found if found else found.copy_abs()


def unscaled(value: Decimal, scale: int) -> int:
    """A number in units of its last digit: 1.50 of scale 2 is 150. :func:`from_unscaled` turns it round.

    Raises:
        ValueError: It has more digits behind the point than ``scale``.
        ArithmeticError: It is too large for any DECIMAL, or not finite.
    """
    scaled = _EXACT.scaleb(value, scale)
    whole = int(scaled)
    if whole != scaled:
        raise ValueError(f"{value} has more than {scale} digits behind the point")
    return whole


def from_unscaled(units: int, scale: int) -> Decimal:
    """The number of so many units of the last digit: 150 of scale 2 is 1.50."""
    return _EXACT.scaleb(Decimal(units), -scale)
