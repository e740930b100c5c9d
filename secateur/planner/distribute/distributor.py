"""Distributes a query: each operator is computed where its rows are, or its rows are sent.

An operator asks where the rows of its inputs are (:mod:`~secateur.planner.distribute.placed`). If they are where it can
compute its own rows, it stays with them, in one kernel call; if not, its input is cut, and an exchange sends the rows
(:mod:`~secateur.planner.distribute.exchanges`). What is uncertain is not divided: the whole statement is gathered, with
the reason.

Source: exchanges as operators of their own (Graefe, "Volcano", 1994); AddExchanges of Presto and Trino.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, prod
from typing import Final

from msgspec.structs import replace

from secateur.engine.processors.order_and_limit import RowLimit
from secateur.planner.aggregates import ORDERLESS
from secateur.planner.binding.query import TableReference
from secateur.planner.cost_model import CostModel
from secateur.planner.distribute.aggregation import split_aggregation
from secateur.planner.distribute.exchanges import Draft, Exchanges, NotDivided, is_row_by_row, is_same_again
from secateur.planner.distribute.inner_joins import InnerJoin
from secateur.planner.distribute.outer_joins import OuterJoin
from secateur.planner.distribute.placed import AtCoordinator, AtEveryMember, AtMembers, Place, Placed
from secateur.planner.distribute.regions import Region
from secateur.planner.row_estimates import Estimate
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.rewriting import Join, conditions_of, inputs_of, is_inner, unread
from secateur.planner.tree.stability import unstable_call

_ONE_ROW: Final = 1.0
_RANDOM: Final = frozenset({"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid"})
"""Functions whose values differ each time, and for each row."""


class Distributor:
    """Distributes one query.

    Args:
        exchanges: Gets the stages.
        scans: The scans, by the names of their relations.
        estimates: The estimated rows of each.
        model: The costs of moving rows.
        is_large: Whether its rows are so many that members sort them.
        at_readers: Whether the rows that no member has are where they are read, each at one member, and not at the
            coordinator, which gets them.
    """

    def __init__(
        self,
        exchanges: Exchanges,
        scans: Mapping[str, TableReference],
        estimates: Mapping[str, Estimate],
        model: CostModel,
        *,
        is_large: bool,
        at_readers: bool = False,
    ) -> None:
        self._exchanges = exchanges
        self._scans = scans
        self._estimates = estimates
        self._model = model
        self._is_large = is_large
        self._at_readers = at_readers
        self._merged: rel.LogicalSort | None = None
        self._ctes: dict[int, Placed] = {}

    def distribute(self, root: rel.AnyRelation) -> list[Draft]:
        """The stages of a query; the last one, at the coordinator, has the answer.

        Raises:
            NotDivided: It is not divided.
        """
        self._merged = _last_sort(root) if self._is_large else None
        width = len(column_types(root))
        placed = self._exchanges.at_coordinator(self.place(root, frozenset(range(width))), range(width))
        relation, limit = placed.relation, None
        if not self._at_readers:  # they make an answer without a job
            relation, limit = _without_limit(relation)
        last = self._exchanges.add(placed.over(relation), "final", is_answer=True)
        last.limit = limit
        return self._exchanges.drafts

    # The relations

    def place(self, relation: rel.AnyRelation, needed: frozenset[int]) -> Placed:
        """A relation where it can be computed; ``needed`` are its columns that are read."""
        match relation:
            case rel.LogicalScan():
                return self._scan(relation)
            case rel.LogicalNothing() | rel.LogicalNoRows() | rel.LogicalValues() | rel.LogicalChunks():
                return Placed(relation, AtEveryMember(), _ONE_ROW)
            case rel.LogicalStageRows():
                return Placed(relation, AtEveryMember(), self._model.unknown_rows)
            case rel.LogicalFilter() | rel.LogicalCross():
                return self._region(relation, needed)
            case rel.LogicalJoin() | rel.LogicalConditionJoin():
                return self._region(relation, needed) if is_inner(relation) else self._outer_join(relation, needed)
            case rel.LogicalProject():
                return self._project(relation, needed)
            case rel.LogicalAggregate():
                return self._aggregate(relation)
            case rel.LogicalDistinct():
                return self._distinct(relation)
            case rel.LogicalWindow():
                return self._window(relation, needed)
            case rel.LogicalUnnestRows():
                return self._unnest(relation, needed)
            case rel.LogicalSort():
                return self._sort(relation, needed)
            case rel.LogicalLimit():
                return self._limit(relation, needed)
            case rel.LogicalUnion() | rel.LogicalExcept() | rel.LogicalIntersect():
                return self._set_operation(relation)
            case rel.LogicalWith():
                return self._with(relation, needed)
            case rel.LogicalWithReference():
                return self._ctes[relation.cte_index]
            case rel.LogicalRecursiveWith():
                return Placed(self._gathered(relation), AtCoordinator(), self._model.unknown_rows)
            case rel.LogicalPositional():
                return self._positional(relation)
            case rel.LogicalSample():
                raise NotDivided("the result of SAMPLE depends on when and where it is evaluated")

    def _scan(self, scan: rel.LogicalScan) -> Placed:
        if scan.table is None:
            if scan.children:
                raise NotDivided(f"{scan.qname.path[-1]} reads rows")
            return Placed(scan, AtEveryMember(), self._model.unknown_rows)
        known, estimate = self._scans[scan.table], self._estimates[scan.table]
        if known.is_fetched and not self._at_readers:
            return Placed(scan, AtCoordinator(), estimate.rows)
        table, names = known.table, scan.column_names
        distinct = {
            index: float(estimate.distinct[name]) for index, name in enumerate(names) if name in estimate.distinct
        }
        width = estimate.bytes / max(estimate.rows, 1.0) / max(len(names), 1)
        widths = dict.fromkeys(range(len(names)), width) if estimate.has_statistics else {}

        def placed_scan(place: Place) -> Placed:
            return Placed(scan, place, estimate.rows, distinct, widths)

        if known.is_fetched:
            return placed_scan(AtMembers("readers", frozenset(), (), None))
        if table.replicated:
            return placed_scan(AtEveryMember())
        key = table.scheme.columns
        keys = frozenset({tuple(names.index(column) for column in key)} if key and set(key) <= set(names) else ())
        types = column_types(scan)
        key_types = tuple(types[names.index(column)] for column in key) if keys else ()
        return placed_scan(AtMembers(table.scheme.affinity_group(), keys, key_types, scan.table))

    def _project(self, relation: rel.LogicalProject, needed: frozenset[int]) -> Placed:
        child = self.place(relation.children[0], inputs_of(relation.expressions[index] for index in needed))
        child = self._once(relation.expressions, child)
        columns = _columns_among(relation.expressions)
        made = tuple(
            expression if index in needed else unread(expression.return_type)
            for index, expression in enumerate(relation.expressions)
        )
        return child.with_columns(replace(relation, children=(child.relation,), expressions=made), columns)

    @staticmethod
    def _in_one_place(child: Placed) -> Placed:
        """The input of an operator that may choose other rows of it the next time: members would not choose alike."""
        if isinstance(child.place, AtEveryMember):
            return child.over(child.relation, place=AtCoordinator())
        return child

    def _once(self, expressions: Iterable[ex.AnyExpression], child: Placed) -> Placed:
        """The input of expressions, where each of its rows is in one place if their values differ each time.

        Raises:
            NotDivided: They have to be equal for all rows, like the time of day.
        """
        call = unstable_call(expressions)
        if call is None or isinstance(child.place, AtCoordinator):
            return child
        if call.name not in _RANDOM:
            raise NotDivided(
                f"the result of {call.name} depends on when and where it is evaluated", call.query_location
            )
        return self._in_one_place(child)

    def _region(self, relation: rel.AnyRelation, needed: frozenset[int]) -> Placed:
        region = Region.of(relation)
        joined = InnerJoin(region, needed, self.place, self._exchanges, self._model).joined()
        return self._once(region.conditions, joined)

    def _outer_join(self, relation: Join, needed: frozenset[int]) -> Placed:
        joined = OuterJoin(relation, needed, self.place, self._exchanges, self._model).joined()
        if isinstance(relation, rel.LogicalAsofJoin):
            joined = self._in_one_place(joined)
        return self._once(conditions_of(relation), joined)

    def _aggregate(self, relation: rel.LogicalAggregate) -> Placed:
        reads = inputs_of((*relation.groups, *relation.expressions))
        child = self.place(relation.children[0], reads)
        child = self._once((*relation.groups, *relation.expressions), child)
        if not all(isinstance(call, ex.AggregateCall) and call.name in ORDERLESS for call in relation.expressions):
            child = self._in_one_place(child)
        whole = replace(relation, children=(child.relation,))
        rows = _group_count(relation, child)
        plain = len(relation.grouping_sets) <= 1 and not relation.grouping_functions
        place = child.place
        if not isinstance(place, AtMembers):
            return Placed(whole, place, rows)
        columns = _columns_among(relation.groups)
        if plain and any(set(key) <= {old for old, _ in columns} for key in place.keys):
            return child.with_columns(whole, columns, rows)
        if not relation.groups and not relation.expressions:  # of HAVING alone: one row, of whatever rows
            sent = self._exchanges.send(child, ())
            return Placed(replace(relation, children=(sent,)), AtCoordinator(), rows)
        split = split_aggregation(relation)
        if split is None:
            gathered = self._exchanges.gather(
                child,
                reads,
                "an aggregate has no partial aggregation: GROUP BY the partitioning key",
                relation.expressions,
            )
            return Placed(replace(relation, children=(gathered,)), AtCoordinator(), rows)
        made, final = split
        partial = replace(made, children=(child.relation,))
        width = len(partial.groups) + len(partial.expressions)
        sent = self._exchanges.send(Placed(partial, place, rows), range(width))
        return Placed(final(sent), AtCoordinator(), rows)

    def _distinct(self, relation: rel.LogicalDistinct) -> Placed:
        width = len(column_types(relation))
        child = self.place(relation.children[0], frozenset(range(width)))
        if relation.distinct_type == "DISTINCT_ON":
            child = self._in_one_place(child)
        place = child.place
        whole = replace(relation, children=(child.relation,))
        if not isinstance(place, AtMembers):
            return child.over(whole)
        targets = [target.index for target in relation.distinct_targets if isinstance(target, ex.InputColumn)]
        if any(set(key) <= set(targets) for key in place.keys):
            return child.over(whole)
        partial = child if relation.distinct_type == "DISTINCT_ON" else child.over(whole)
        sent = self._exchanges.send(partial, range(width))
        return Placed(replace(relation, children=(sent,)), AtCoordinator(), child.rows)

    def _window(self, relation: rel.LogicalWindow, needed: frozenset[int]) -> Placed:
        width = len(column_types(relation.children[0]))
        reads = inputs_of(relation.expressions) | {index for index in needed if index < width}
        child = self._in_one_place(self.place(relation.children[0], reads))
        whole = replace(relation, children=(child.relation,))
        if not isinstance(child.place, AtMembers):
            return child.over(whole)
        partitions = [
            {one.index for one in call.partitions if isinstance(one, ex.InputColumn)}
            for call in relation.expressions
            if isinstance(call, ex.WindowCall)
        ]
        common = set.intersection(*partitions) if partitions else set()
        if any(set(key) <= common for key in child.place.keys):
            return child.over(whole)
        sent = self._exchanges.gather(
            child,
            reads,
            "a window is not partitioned by the partitioning key: add it to PARTITION BY",
            relation.expressions,
        )
        return Placed(replace(relation, children=(sent,)), AtCoordinator(), child.rows)

    def _unnest(self, relation: rel.LogicalUnnestRows, needed: frozenset[int]) -> Placed:
        width = len(column_types(relation.children[0]))
        reads = inputs_of(relation.expressions) | {index for index in needed if index < width}
        child = self.place(relation.children[0], reads)
        child = self._once(relation.expressions, child)
        return child.over(replace(relation, children=(child.relation,)))

    def _sort(self, relation: rel.LogicalSort, needed: frozenset[int]) -> Placed:
        reads = inputs_of(order.expression for order in relation.orders) | needed
        child = self.place(relation.children[0], reads)
        child = self._once((order.expression for order in relation.orders), child)
        if not isinstance(child.place, AtMembers):
            return child.over(replace(relation, children=(child.relation,)))
        order = _plain_order(relation) if relation is self._merged else None
        if order is None:
            sent, is_merged = self._exchanges.send(child, reads), False
        else:
            sorted_there = child.over(replace(relation, children=(child.relation,)))
            sent, is_merged = self._exchanges.send_in_order(sorted_there, reads, order)
        return Placed(sent if is_merged else replace(relation, children=(sent,)), AtCoordinator(), child.rows)

    def _limit(self, relation: rel.LogicalLimit, needed: frozenset[int]) -> Placed:
        """The first rows of each member: where they are sorted in that order, and of distinct ones, distinct ones."""
        (below,) = relation.children
        sort = below if isinstance(below, rel.LogicalSort) else None
        rows = below if sort is None else sort.children[0]
        distinct = rows if isinstance(rows, rel.LogicalDistinct) and rows.distinct_type == "DISTINCT" else None
        if distinct is not None:
            reads = frozenset(range(len(column_types(rows))))
        else:
            reads = needed | inputs_of(order.expression for order in (() if sort is None else sort.orders))
        child = self._in_one_place(self.place(rows if distinct is None else distinct.children[0], reads))

        def whole(rows: rel.AnyRelation) -> rel.AnyRelation:
            made = rows if distinct is None else replace(distinct, children=(rows,))
            return made if sort is None else replace(sort, children=(made,))

        if not isinstance(child.place, AtMembers):
            return child.over(replace(relation, children=(whole(child.relation),)))
        sent = self._exchanges.send(child.over(_first_rows(relation, whole(child.relation))), reads)
        return Placed(replace(relation, children=(whole(sent),)), AtCoordinator(), child.rows)

    def _set_operation(self, relation: rel.LogicalUnion | rel.LogicalExcept | rel.LogicalIntersect) -> Placed:
        every = frozenset(range(relation.column_count))
        parts = [self.place(child, every) for child in relation.children]
        is_union = isinstance(relation, rel.LogicalUnion)
        rows = sum(part.rows for part in parts) if is_union else parts[0].rows
        place = self._where_together(parts, may_be_anywhere=is_union and relation.setop_all)
        if isinstance(place, AtCoordinator):
            parts = [self._exchanges.at_coordinator(part, every) for part in parts]
        return Placed(replace(relation, children=tuple(part.relation for part in parts)), place, rows)

    @staticmethod
    def _where_together(parts: Sequence[Placed], *, may_be_anywhere: bool) -> Place:
        """Where a set operation is computed: equal rows have to be in one place, unless all rows are kept."""
        if all(isinstance(part.place, AtEveryMember) for part in parts):
            return AtEveryMember()
        places = [part.place for part in parts if isinstance(part.place, AtMembers)]
        if len(places) < len(parts):
            return AtCoordinator()
        if len({place.group for place in places}) > 1:
            return AtMembers("", frozenset(), (), None) if may_be_anywhere else AtCoordinator()
        keys = frozenset.intersection(*(place.keys for place in places))
        return places[0].with_keys(keys) if keys or may_be_anywhere else AtCoordinator()

    def _positional(self, relation: rel.LogicalPositional) -> Placed:
        parts = [self.place(child, frozenset(range(len(column_types(child))))) for child in relation.children]
        here = [
            self._exchanges.at_coordinator(part, range(len(column_types(part.relation)))).relation for part in parts
        ]
        return Placed(replace(relation, children=tuple(here)), AtCoordinator(), max(part.rows for part in parts))

    def _with(self, relation: rel.LogicalWith, needed: frozenset[int]) -> Placed:
        """A query that reads a common table expression several times.

        Its rows are computed once if they come to one place, or if they might not be the same the next time.
        """
        definition, query = relation.children
        every = range(len(column_types(definition)))
        placed = self.place(definition, frozenset(every))
        if isinstance(placed.place, AtCoordinator) or not is_same_again(placed.relation):
            rows = self._exchanges.send(self._exchanges.at_coordinator(placed, every), every)
            placed = Placed(rows, AtEveryMember(), placed.rows)
        self._ctes[relation.table_index] = placed
        return self.place(query, needed)

    def _gathered(self, relation: rel.AnyRelation) -> rel.AnyRelation:
        """A recursive query at the coordinator, which gets the rows of its tables."""
        every = range(len(column_types(relation)))
        if isinstance(relation, rel.LogicalScan):
            return self._exchanges.at_coordinator(self._scan(relation), every).relation
        if isinstance(relation, rel.LogicalWithReference) and relation.cte_index in self._ctes:
            return self._exchanges.at_coordinator(self._ctes[relation.cte_index], every).relation
        return replace(relation, children=tuple(self._gathered(child) for child in relation.children))


def _columns_among(expressions: Sequence[ex.AnyExpression]) -> list[tuple[int, int]]:
    """The columns that are among some expressions, each with its place there."""
    return [(one.index, place) for place, one in enumerate(expressions) if isinstance(one, ex.InputColumn)]


def _group_count(relation: rel.LogicalAggregate, child: Placed) -> float:
    """About how many groups there are: as many as their keys have distinct values together."""
    if not relation.groups:
        return _ONE_ROW
    counts = (
        child.distinct.get(group.index) if isinstance(group, ex.InputColumn) else None for group in relation.groups
    )
    return min(child.rows, prod(inf if count is None else count for count in counts))


def _first_rows(limit: rel.LogicalLimit, below: rel.AnyRelation) -> rel.AnyRelation:
    """The rows of a member among which are those of LIMIT and OFFSET."""
    count = limit.limit_val
    if count.type != "CONSTANT_VALUE" or limit.offset_val.type not in ("UNSET", "CONSTANT_VALUE"):
        return below
    value = rel.LimitValue(
        type="CONSTANT_VALUE", constant_integer=count.constant_integer + limit.offset_val.constant_integer
    )
    return rel.LogicalLimit(children=(below,), limit_val=value, offset_val=rel.LimitValue())


def _without_limit(relation: rel.AnyRelation) -> tuple[rel.AnyRelation, RowLimit | None]:
    """The answer without a LIMIT of rows that come as they are, and the limit: it ends the statement early."""
    match relation:
        case rel.LogicalLimit(children=(below,), limit_val=count, offset_val=skipped) if is_row_by_row(below) and {
            count.type,
            skipped.type,
        } <= {"UNSET", "CONSTANT_VALUE"}:
            taken = count.constant_integer if count.type == "CONSTANT_VALUE" else None
            return below, RowLimit(skipped.constant_integer, taken)
        case rel.LogicalProject(children=(below,)):
            inner, limit = _without_limit(below)
            return (relation, None) if limit is None else (replace(relation, children=(inner,)), limit)
        case _:
            return relation, None


def _last_sort(relation: rel.AnyRelation) -> rel.LogicalSort | None:
    """The sort whose rows, one by one, are the answer."""
    while isinstance(relation, rel.LogicalProject):
        (relation,) = relation.children
    return relation if isinstance(relation, rel.LogicalSort) else None


def _plain_order(relation: rel.LogicalSort) -> list[tuple[int, bool, bool]] | None:
    """The columns by which rows are sorted, with direction and place of NULL; None where it is by a computed value."""
    keys = [
        (order.expression.index, order.type == "DESCENDING", order.null_order == "NULLS FIRST")
        for order in relation.orders
        if isinstance(order.expression, ex.InputColumn)
    ]
    return keys if len(keys) == len(relation.orders) else None
