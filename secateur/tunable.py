"""Settings that describe themselves; numbers also say their unit, their bounds, and where their default comes from."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from math import inf, isinf
from typing import Any, Final

from secateur.errors import ProgrammingError

_KEY: Final = "tunable"
_DESCRIPTION: Final = "description"


@dataclass(frozen=True, slots=True)
class Tunable:
    """The description of one number.

    Attributes:
        name: Its name.
        default: Its default.
        unit: What it counts: ``bytes``, ``rows``, ``seconds``, ``share`` (0 to 1), ...
        effect: The decision that it controls, in one sentence.
        basis: The measurement behind the default, or how it was chosen without one.
        least: The smallest value.
        most: The largest value.
    """

    name: str
    default: float
    unit: str
    effect: str
    basis: str
    least: float
    most: float

    def read(self, text: str) -> float | None:
        """The number that a text names; None for a text that names none, or one out of bounds."""
        try:
            value = float(text)
        except ValueError:
            return None
        if isinstance(self.default, int):
            return int(value) if value.is_integer() and self._holds(value) else None
        return value if self._holds(value) else None

    def check(self, owner: str, value: object) -> None:
        """Check a value.

        Raises:
            ProgrammingError: It is no number of the kind of the default, or it is out of bounds.
        """
        kinds = (int,) if isinstance(self.default, int) else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not self._holds(value):
            raise ProgrammingError(f"{owner}.{self.name}={value!r}: expected {self.expected}")

    @property
    def expected(self) -> str:
        """The values that it accepts, for messages."""
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        bounds = f" of at least {self.least:g}" if isinf(self.most) else f" from {self.least:g} to {self.most:g}"
        return f"{kind}{bounds} ({self.unit})"

    def _holds(self, value: float) -> bool:
        return self.least <= value <= self.most  # NaN compares with nothing


_known: Final[dict[type[Any], tuple[Tunable, ...]]] = {}


def tunable(default: float, unit: str, effect: str, basis: str, *, least: float = 0, most: float = inf) -> Any:
    """A field of a dataclass that is a number which users and tests may set; as :class:`Tunable`.

    A whole default takes whole numbers only.
    """
    return field(default=default, metadata={_KEY: Tunable("", default, unit, effect, basis, least, most)})


def setting(description: str, **field_options: Any) -> Any:
    """A field of a dataclass that users may set and that is no bounded number.

    Args:
        description: What it does, as users read it.
        field_options: As :func:`dataclasses.field` takes them.
    """
    return field(metadata={_DESCRIPTION: description}, **field_options)


def description_of(one: Field[Any]) -> str | None:
    """The description of a field; None for a field that users do not set."""
    found: str | None = one.metadata.get(_DESCRIPTION)
    return found


def tunables_of(cls: type[Any]) -> tuple[Tunable, ...]:
    """All numbers of a dataclass, in the order of its fields. Cost: 0.1 microseconds, beyond the first call."""
    found = _known.get(cls)
    if found is None:
        found = _known[cls] = tuple(_of(one) for one in fields(cls))
    return found


def check_tunables(value: Any) -> None:
    """Check all numbers of a dataclass, for its ``__post_init__``.

    Raises:
        ProgrammingError: One is out of bounds.
    """
    kind = type(value)
    for one in tunables_of(kind):
        one.check(kind.__name__, getattr(value, one.name))


def _of(one: Field[Any]) -> Tunable:
    found: Tunable = one.metadata[_KEY]
    return Tunable(one.name, found.default, found.unit, found.effect, found.basis, found.least, found.most)
