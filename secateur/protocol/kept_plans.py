"""Plans that are kept for the next execution of their texts, at clients, at members and at the controller."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Generic, TypeAlias, TypeVar

from secateur.forks import free_in_forks

K = TypeVar("K", bound=Hashable)
P = TypeVar("P")

_PLANS_PER_TEXT_MAX: Final = 32
"""Most texts need one or two; decimals have hundreds of types, and the plans for them may not take all places."""

_Params: TypeAlias = Sequence[Any] | dict[str, Any]
NESTED: Final = frozenset({list, dict})
_VARIED: Final = frozenset({int, Decimal, datetime})
"""Classes that are not nested, and whose values have several types."""
_DECIMAL: Final = "DECIMAL"
_DIGITS_MAX: Final = 38
_MAP: Final = frozenset({"key", "value"})


class _Plans(Generic[P]):
    """The plans of a text for values of some classes.

    Attributes:
        places: The parameters on whose types they depend, by index or by name.
        plans: By the types of those parameters; the least recently used is the first.
    """

    __slots__ = ("places", "plans")

    def __init__(self, places: tuple[Any, ...]) -> None:
        self.places = places
        self.plans: OrderedDict[tuple[object, ...], P] = OrderedDict()


class KeptPlans(Generic[K, P]):
    """A bounded number of plans by their texts and the types of parameters on which they depend. Thread-safe.

    The least recently used text goes first.

    Args:
        plans_max: How many plans are kept.
    """

    def __init__(self, plans_max: int) -> None:
        self._plans_max = plans_max
        self._per_text_max = min(_PLANS_PER_TEXT_MAX, plans_max)
        self._texts: OrderedDict[tuple[K, tuple[object, ...]], _Plans[P]] = OrderedDict()
        self._count = 0
        self._lock = free_in_forks(threading.Lock())

    def __len__(self) -> int:
        return self._count

    def get(self, text: K, params: _Params) -> P | None:
        """The plan of a text for plain parameters, or None.

        Args:
            text: The text, with whatever else plans depend on.
            params: The parameters.
        """
        key = text, classes_of(params)
        with self._lock:
            kept = self._texts.get(key)
            if kept is None:
                return None
            self._texts.move_to_end(key)
            if not kept.places:  # nearly always
                return kept.plans[()]
        types = types_at(kept.places, params)
        with self._lock:
            found = kept.plans.get(types)
            if found is not None:
                kept.plans.move_to_end(types)
            return found

    def put(self, text: K, params: _Params, plan: P, typed: Sequence[int], names: Sequence[str] = ()) -> None:
        """Keep the plan of a text.

        Args:
            text: As for :meth:`get`.
            params: The parameters that it was made for.
            plan: The plan.
            typed: The indexes of the parameters on whose types it depends; those behind the parameters do not count.
            names: The names of the parameters in order, where they have any.
        """
        places: tuple[Any, ...] = tuple(index for index in typed if index < len(params))
        if isinstance(params, dict):
            spelled = {name.casefold(): name for name in params}
            places = tuple(spelled[names[index].casefold()] for index in places)
        key, types = (text, classes_of(params)), types_at(places, params)
        with self._lock:
            kept = self._texts.get(key)
            if kept is None or kept.places != places:
                self._drop(key)
                kept = self._texts[key] = _Plans(places)
            self._count += types not in kept.plans
            kept.plans[types] = plan
            kept.plans.move_to_end(types)
            self._texts.move_to_end(key)
            if len(kept.plans) > self._per_text_max:
                kept.plans.popitem(last=False)
                self._count -= 1
            while self._count > self._plans_max:
                self._drop(next(iter(self._texts)))

    def forget(self, text: K, params: _Params) -> None:
        """Drop the plans of a text that turned out to be stale."""
        with self._lock:
            self._drop((text, classes_of(params)))

    def keep(self, is_kept: Callable[[P], bool]) -> None:
        """Drop the plans of all texts of which one is not to be kept."""
        with self._lock:
            for key in [key for key, kept in self._texts.items() if not all(map(is_kept, kept.plans.values()))]:
                self._drop(key)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._texts.clear()
            self._count = 0

    def _drop(self, key: tuple[K, tuple[object, ...]]) -> None:
        kept = self._texts.pop(key, None)
        self._count -= 0 if kept is None else len(kept.plans)


def types_at(places: tuple[Any, ...], params: Any) -> tuple[object, ...]:
    """The types of the parameters at some places."""
    return tuple([type_of(params[place]) for place in places])


def classes_of(params: Sequence[Any] | dict[str, Any]) -> tuple[object, ...]:
    """The classes of plain parameters, with their names if they have any, and with the classes inside of nested ones.

    A plan is made for the types that DuckDB gives the values of its parameters: ``sum(k * $1)`` has another type, and
    other stages, for 1.5 than for 1.55. Most parameters are only compared with something, or cast, and then all numbers
    have one plan. So there are two readings of a value: its class, which every execution looks at, and its type, for
    the parameters on whose types the plan of a text depends (:class:`~secateur.protocol.kept_plans.KeptPlans`).

    Cost: a quarter of a microsecond for a few values that are not nested.
    """
    if isinstance(params, dict):
        return tuple(sorted((name, _class_of(value)) for name, value in params.items()))
    classes = tuple(map(type, params))
    return classes if NESTED.isdisjoint(classes) else tuple(map(_class_of, params))


def type_of(value: Any) -> object:
    """A name for the type that DuckDB gives a plain value: values with equal ones have equal types there.

    Cost: some tenths of a microsecond, also for each number in a list.
    """
    kind = type(value)
    if kind is int:
        return _integer(value)
    if kind is Decimal:
        return _decimal(value)
    if kind is datetime:
        return kind if value.tzinfo is None else "TIMESTAMPTZ"
    return _inside(value, type_of) if kind in NESTED else kind


def _class_of(value: Any) -> object:
    kind = type(value)
    return _inside(value, _class_of) if kind in NESTED else kind


def _inside(value: list[Any] | dict[str, Any], of: Callable[[Any], object]) -> object:
    """A dict by what it has under its names, a list by the different elements that it has."""
    if isinstance(value, dict):
        # Lists of one length under these names are a MAP, others a STRUCT.
        is_map = value.keys() == _MAP and len({len(item) for item in value.values() if type(item) is list}) == 1
        return dict, is_map, *((name, of(item)) for name, item in value.items())
    kinds = frozenset(map(type, value))
    if not NESTED.isdisjoint(kinds):
        return list, *dict.fromkeys(map(of, value))  # in order, since a STRUCT of several has its names in theirs
    return list, kinds if of is _class_of or _VARIED.isdisjoint(kinds) else frozenset(_joined(set(map(of, value))))


def _joined(types: set[object]) -> Iterable[object]:
    """The types of elements, those of decimals as the one that holds them all: prices have many."""
    decimals = [kind for kind in types if isinstance(kind, tuple)]
    _, wholes, scales = zip(*decimals, strict=True) if decimals else ((), (), ())
    return (*types.difference(decimals), *([(_DECIMAL, max(wholes), max(scales))] if decimals else []))


def _integer(value: int) -> str:
    if -(2**31) <= value < 2**31:
        return "INTEGER"
    if -(2**63) <= value < 2**63:
        return "BIGINT"
    if 0 < value < 2**64:
        return "UBIGINT"
    return "HUGEINT" if value < 2**127 else "UHUGEINT"


def _decimal(value: Decimal) -> object:
    """A DECIMAL by its digits before and behind the point; a number that has too many is a DOUBLE."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return Decimal  # NaN or infinite
    scale = max(-exponent, 0)
    width = len(digits) + max(exponent, 0)
    if width < scale:
        width = scale + 1
    return (_DECIMAL, width - scale, scale) if width <= _DIGITS_MAX else float
