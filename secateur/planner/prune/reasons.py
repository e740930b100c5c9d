"""Why a scan reads every partition, in words a user can act on."""

from __future__ import annotations

from collections.abc import Sequence

from secateur.partitioning.pruning.condition import Constraint
from secateur.partitioning.pruning.select_partitions import UnprunedComponent
from secateur.partitioning.schemes.components import ROW_ID
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.planner.prune.bounds import Boxes
from secateur.planner.prune.partition_nodes import DENSE, excludes, may_be_finite


def why_not_pruned(
    table: TableDef,
    factors: Sequence[Boxes],
    notes: Sequence[str],
    overflows: Sequence[UnprunedComponent],
) -> str:
    """Why a scan reads every partition, in words a user can act on."""
    key = table.scheme.columns
    if not key:
        return "the table has one partition: create it with PARTITION BY to divide it"
    if ROW_ID in key:
        key = tuple(column for column in key if column != ROW_ID)
        if not key:
            return "the rows are spread at random: create the table with PARTITION BY HASH (columns) to prune by them"
    if overflows and (not notes or any(overflow.combinations is not None for overflow in overflows)):
        return "; ".join(dict.fromkeys(overflow_reason(overflow) for overflow in overflows))
    listed = key[0] if len(key) == 1 else f"({', '.join(key)})"
    bound = dict.fromkeys(column for boxes in factors for box in boxes for column, _ in box.constraints)
    texts = list(notes)
    missing = [column for column in key if column not in bound]
    endless = [column for column in bound if _is_endless(column, table.scheme, factors)]
    if endless:
        texts.insert(
            0,
            f"the predicates on {', '.join(endless)} bound a range, but {listed} is hashed:"
            f" compare {', '.join([*endless, *missing])} with = or IN",
        )
    elif bound and missing:
        texts.insert(
            0,
            f"partition key is {listed} but only {', '.join(bound)} {'is' if len(bound) == 1 else 'are'} bound: compare"
            f" {', '.join(missing)} with values as well",
        )
    elif bound and not texts:
        texts.append(
            f"the predicates on {', '.join(bound)} bound a range, but {listed} is hashed: compare with = or IN"
        )
    if not texts:
        texts.append(
            f"no predicate on the partition key {listed}:"
            f" compare {'it' if len(key) == 1 else 'its columns'} with values"
        )
    return "; ".join(texts)


def overflow_reason(overflow: UnprunedComponent) -> str:
    """An overflow in words."""
    columns = ", ".join(overflow.component.columns)
    if overflow.combinations is None:
        return (
            f"the range of ({columns}) has more values than the limit of {overflow.limit:,}, or values "
            "that cannot be counted: compare with = or IN, or with a narrower range"
        )
    return (
        f"{overflow.combinations:,} combinations of ({columns}) exceed the limit of {overflow.limit:,}: "
        "ask for fewer keys, or raise it with SET combinations_per_partition"
    )


def _is_endless(column: str, scheme: PartitionScheme, factors: Sequence[Boxes]) -> bool:
    """Whether a hashed column is bound to texts or bytes of some range, such as those with a prefix."""
    hashed = any(column in component.columns for hashes in scheme.hash_lists() for component in hashes)
    constraints = (box[column] for boxes in factors for box in boxes if box[column].choices)
    column_type = scheme.type_of(column)
    return (
        hashed
        and column_type.kind in DENSE
        and not any(
            may_be_finite(constraint, column_type) or _excludes_values(constraint) for constraint in constraints
        )
    )


def _excludes_values(constraint: Constraint) -> bool:
    """Whether a constraint leaves values without an end in both directions, as ``<>`` does."""
    return any(
        excludes(choice)
        or (choice.domain.spans and choice.domain.spans[0].lower is None and choice.domain.spans[-1].upper is None)
        for choice in constraint.choices
    )
