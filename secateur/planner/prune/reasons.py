"""Why a scan reads every partition, and why a predicate does not prune, in words a user can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from secateur.partitioning.pruning.comparison import Comparison
from secateur.partitioning.pruning.comparison_target import allowed
from secateur.partitioning.pruning.condition import Box, Constraint
from secateur.partitioning.pruning.domain import EVERYTHING, Domain
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.operand import ParameterList
from secateur.partitioning.pruning.select_partitions import UnprunedComponent, select_partitions
from secateur.partitioning.pruning.tree import PartitionTree, value_text
from secateur.partitioning.schemes.components import ROW_ID, HashComponent
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.prune.bounds import Boxes, ScanBounds
from secateur.planner.prune.partition_nodes import DENSE, excludes, may_be_finite
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import COMPARISONS, PATTERNS
from secateur.planner.tree.rewriting import cast_of, parts


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


def why_unused(whole: ex.AnyExpression, columns: ScanColumns, types: Mapping[str, SqlType], text: str) -> str | None:
    """The prune reason, which depends on the expression around the first key column; None where there is none."""
    found = _first_column(whole, columns, types)
    if found is None:
        return None
    column, holder = found
    match holder:
        case ex.Call() if cast_of(holder) is not None:
            return f"{column} is cast in {text}: compare the bare column with a {types[column]}"
        case ex.Call(type="COMPARE_DISTINCT_FROM" | "COMPARE_NOT_DISTINCT_FROM"):
            return f"{text} can be TRUE where an outer join has filled {column} with NULL: compare with = or <>"
        case ex.Call() if holder.type in COMPARISONS:
            return f"{column} is not compared with a constant or a parameter in {text}: pass the value as a parameter"
        case ex.Call() if PATTERNS.get(holder.name) in (Comparison.ILIKE, Comparison.NOT_ILIKE):
            return f"ILIKE compares {column} without regard to case: use LIKE, or compare {column} with values"
        case ex.Call() if holder.name in PATTERNS:
            return (
                f"{column} is matched by a pattern that does not bound it: compare it with values, or with "
                "LIKE 'prefix%'"
            )
        case ex.Call(name="row"):
            return (
                f"{column} is part of a row value in {text} that may be NULL, or that is not "
                "compared with constants: compare each column by itself"
            )
        case ex.Call() if holder.name[0].isalpha():
            return f"{column} is wrapped in {holder.name}(): compare the bare column"
        case ex.BoundOperation(type="COMPARE_IN" | "COMPARE_NOT_IN"):
            return f"{column} is compared with a list that is not constant: pass the values as parameters"
        case ex.BoundOperation(type="OPERATOR_IS_NULL" | "OPERATOR_IS_NOT_NULL"):
            return f"{text} does not restrict {column} to values: compare {column} with = or IN"
        case ex.Call() | ex.BoundOperation() | ex.Case():
            return f"{column} is part of an expression in {text}: compare the bare column"
        case _:
            return f"{text} does not bound {column}: compare {column} with =, IN, <, BETWEEN or LIKE 'prefix%'"


def _first_column(
    whole: ex.AnyExpression, columns: ScanColumns, types: Mapping[str, SqlType]
) -> tuple[str, ex.AnyExpression | None] | None:
    """The first key column in an expression, in the order of its text, and what it stands in."""
    pending: list[tuple[ex.AnyExpression, ex.AnyExpression | None]] = [(whole, None)]
    while pending:
        node, holder = pending.pop()
        column = columns.spelled(node)
        if column is not None and column in types:
            return column, holder
        pending.extend((part, node) for part in reversed(parts(node)))
    return None


def why_nothing_pruned(tree: PartitionTree, bounds: ScanBounds, params: Sequence[Any]) -> str:
    """Return the reason and what to do about it.

    The predicates of the scan leave no partition out for the values of this call, although they could for others.
    """
    scheme = tree.scheme
    types = dict(scheme.types)
    boxes = [box for boxes in bounds.factors for box in boxes]
    for box in boxes:
        reason = _incomparable(box, types, params)
        if reason is not None:
            return reason
    domains = [box.resolve(params, types) for box in boxes]
    selections = [
        select_partitions(scheme, each, tree.limit, box.equal) for box, each in zip(boxes, domains, strict=True)
    ]
    overflows = dict.fromkeys(overflow for selection in selections for overflow in selection.overflows)
    if overflows:
        return "; ".join(map(overflow_reason, overflows))
    for each, selection in zip(domains, selections, strict=True):
        if len(selection.ids) == tree.total:
            return "; ".join(_component_reasons(scheme, each))
    return "its alternatives reach every partition together: ask for fewer keys at once"


def _incomparable(box: Box, types: Mapping[str, Any], params: Sequence[Any]) -> str | None:
    """Why a value of this call cannot be compared with its column; None if all can."""
    for column, constraint in box.constraints:
        for test in constraint.tests:
            values = test.values(params, types[column])
            if allowed(test.comparison_target, test.comparison, values, types[column]) is not None:
                continue
            if UNKNOWN in values and not any(isinstance(operand, ParameterList) for operand in test.operands):
                return (
                    f"only DuckDB can compute the value that {column} is compared with: compute it "
                    "first and pass it as a parameter"
                )
            if UNKNOWN in values:
                return (
                    f"{column} is compared with a parameter that is not a list of {types[column]} "
                    "values: pass such a list"
                )
            shown = ", ".join(value_text(value) for value in values[:3])
            return f"{column} is a {types[column]}, and comparing it with {shown} would cast it: pass a {types[column]}"
    return None


def _component_reasons(scheme: PartitionScheme, domains: Mapping[str, Domain]) -> list[str]:
    """Why each component of a scheme leaves nothing out for one combination of domains."""
    components = dict.fromkeys(component for hashes in scheme.hash_lists() for component in hashes)
    reasons = [_hash_reason(component, domains) for component in components]
    if scheme.range is not None:
        columns = scheme.range.columns
        first = columns[0]
        name = f"RANGE ({', '.join(columns)})"
        reasons.append(
            f"no predicate bounds {first} of {name}: compare {first} with values"
            if domains.get(first, EVERYTHING).is_everything
            else f"the predicates on {first} reach every range of {name}: ask for a narrower range"
        )
    return reasons


def _hash_reason(component: HashComponent, domains: Mapping[str, Domain]) -> str:
    name = f"HASH ({', '.join(component.columns)})"
    free = [column for column in component.columns if domains.get(column, EVERYTHING).is_everything]
    ranged = [column for column in component.columns if column not in free and not domains[column].is_finite]
    if free:
        listed = ", ".join(free)
        return f"{listed} of {name} {'is' if len(free) == 1 else 'are'} not bound: compare {listed} with = or IN"
    if ranged:
        return (
            f"the range of {', '.join(ranged)} has values in all {component.partitions} partitions of {name}: "
            "compare with =, IN or a narrower range"
        )
    return f"the values of {name} are in all of its {component.partitions} partitions: ask for fewer keys at once"
