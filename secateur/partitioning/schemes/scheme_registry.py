"""Large schemes are sent once, with their table; statements refer to them by name.

The scheme of a table with 100,000 ranges has megabytes. Statements must not carry it, and receivers of statements must
not resolve it again. The cluster therefore gives such a scheme a *reference* that is never reused. Members and clients
that have the table have the scheme under its reference, and partition trees and plans carry the reference.

The registry is process-wide and holds weak references: a scheme stays in it as long as some table, plan or tree uses
it.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakValueDictionary

from secateur.errors import TopologyChangedError
from secateur.partitioning.schemes.scheme import PartitionScheme

__all__ = ["RANGES_INLINE_MAX", "read_scheme", "scheme_to_wire"]

RANGES_INLINE_MAX: Final = 64
"""Up to so many ranges a scheme travels with every statement: a kilobyte or two, which cost less than asking for
them.
"""

_registry: Final[WeakValueDictionary[str, PartitionScheme]] = WeakValueDictionary()


def scheme_to_wire(scheme: PartitionScheme, *, by_reference: bool) -> Any:
    """Plain data for msgpack: the whole scheme, or its reference if that is asked for and it has one."""
    return scheme.reference if by_reference and scheme.reference is not None else scheme.to_wire()


def read_scheme(data: Any, *, table: str) -> PartitionScheme:
    """Read :func:`scheme_to_wire`.

    A scheme that comes whole is noted in the registry; of two with one reference the first is used on.

    Args:
        data: The received data.
        table: The table's name, for the error.

    Raises:
        TopologyChangedError: A reference that is not in the registry: the table is not known here, or not at this
            version. ``details`` has ``table``.
    """
    if isinstance(data, str):
        known = _registry.get(data)
        if known is None:
            raise TopologyChangedError(
                f"the ranges of table {table} are not known here, or have changed: fetch the table again", table=table
            )
        return known
    reference = data["reference"]
    if reference is None:
        return PartitionScheme.from_wire(data)
    known = _registry.get(reference)
    return _registry.setdefault(reference, PartitionScheme.from_wire(data)) if known is None else known
