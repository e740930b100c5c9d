"""The text of a relation, for DuckDB to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import count
from typing import Final

from secateur.partitioning.types.sql_text import quoted
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.expression_sql import COMPARISONS, BoundText, ExpressionPrinter, Unprintable, value_sql
from secateur.planner.tree.rewriting import inputs_of
from secateur.planner.tree.stability import unstable_call

_JOINS: Final = {
    "INNER": "JOIN",
    "LEFT": "LEFT JOIN",
    "RIGHT": "RIGHT JOIN",
    "OUTER": "FULL JOIN",
    "FULL": "FULL JOIN",
    "SEMI": "SEMI JOIN",
    "ANTI": "ANTI JOIN",
}
_SET_OPERATIONS: Final = {rel.LogicalUnion: "UNION", rel.LogicalExcept: "EXCEPT", rel.LogicalIntersect: "INTERSECT"}
_MATERIALIZED: Final = {
    "CTE_MATERIALIZE_DEFAULT": "",
    "CTE_MATERIALIZE_ALWAYS": "MATERIALIZED ",
    "CTE_MATERIALIZE_NEVER": "NOT MATERIALIZED ",
}


class _Form(Enum):
    """How far a SELECT is put together."""

    COLUMNS = "columns of its source"
    COMPUTED = "expressions over columns of its source"
    GROUPED = "groups, aggregates, and expressions over them"
    DONE = "anything else"


@dataclass(slots=True)
class _Block:
    """A SELECT that is being put together.

    Attributes:
        items: The texts of its columns.
        names: Their names.
        source: What stands behind FROM.
        form: What its items are.
        is_join: Whether the source is a join.
        where: Its conditions, and so on, clause by clause.
        constants: The texts of items that are the same for all rows.
        is_volatile: Whether an item has another value each time.
        is_recursive: Whether a common table expression reads itself.
    """

    items: list[str]
    names: list[str]
    source: str
    form: _Form = _Form.COLUMNS
    is_join: bool = False
    where: list[str] = field(default_factory=list)
    group: str = ""
    having: list[str] = field(default_factory=list)
    distinct: str = ""
    order: str = ""
    limit: str = ""
    ctes: list[str] = field(default_factory=list)
    constants: frozenset[str] = frozenset()
    is_volatile: bool = False
    is_recursive: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether rows are left out, or in an order, after its items were computed."""
        return bool(self.distinct or self.order or self.limit)

    @property
    def sql(self) -> str:
        named = ", ".join(
            item if item.rpartition(".")[2] == quoted(name) else f"{item} AS {quoted(name)}"
            for item, name in zip(self.items, self.names, strict=True)
        )
        ctes = f"WITH {'RECURSIVE ' if self.is_recursive else ''}{', '.join(self.ctes)} " if self.ctes else ""
        source = f" FROM {self.source}" if self.source else ""
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        having = f" HAVING {' AND '.join(self.having)}" if self.having else ""
        rest = f"{source}{where}{self.group}{having}{self.order}{self.limit}"
        return f"{ctes}SELECT {self.distinct}{named or '1'}{rest}"


def sql_of(relation: rel.AnyRelation, table: Callable[[rel.LogicalScan], str], text: BoundText) -> str:
    """The text of a relation; ``table`` has that of each scan of a table.

    Raises:
        Unprintable: A part has no text.
    """
    return _Printer(table, text).block(relation).sql


class _Printer:
    def __init__(self, table: Callable[[rel.LogicalScan], str], text: BoundText) -> None:
        self._table = table
        self._numbers = count(1)
        self._expressions = ExpressionPrinter(text, self._numbers)
        self._text_of = self._expressions.expression
        self._orders = self._expressions.orders
        self._ctes: dict[int, tuple[str, list[str]]] = {}

    def block(self, relation: rel.AnyRelation) -> _Block:
        return getattr(self, f"_{type(relation).__name__.removeprefix('Logical').lower()}")(relation)

    # leaves

    def _scan(self, scan: rel.LogicalScan) -> _Block:
        if scan.table is None:
            if scan.children or scan.projected_input:
                raise Unprintable("a table function over rows")
            arguments = [value_sql(value, value.type) for value in scan.parameters]
            if scan.named_parameters:
                raise Unprintable("named arguments of a table function")
            source = f"{scan.qname.path[-1]}({', '.join(arguments)})"
        else:
            source = self._table(scan)
        alias = f"t{next(self._numbers)}"
        names = scan.column_names
        source = f"{source} AS {alias}"
        if scan.table is None:
            source += f"({', '.join(map(quoted, scan.names))})"
        # For rows without columns DuckDB reads their numbers, whose values nothing asks for.
        items = [f"{alias}.{quoted(name)}" if name else "true" for name in names]
        return _Block(items, _unique(names), source)

    def _stagerows(self, relation: rel.LogicalStageRows) -> _Block:
        return self._whole(relation.name, relation.names)

    def _nothing(self, _: rel.LogicalNothing) -> _Block:
        return _Block(["NULL"], ["c0"], "")  # DuckDB counts a column of it, which nothing reads

    def _norows(self, relation: rel.LogicalNoRows) -> _Block:
        items = [f"CAST(NULL AS {type_.sql})" for type_ in relation.return_types]
        return _Block(items, _names(len(items)), "", _Form.DONE, where=["false"])

    def _values(self, relation: rel.LogicalValues) -> _Block:
        if not isinstance(relation.children[0], rel.LogicalNothing):
            raise Unprintable("VALUES with a subquery")
        rows = ", ".join(f"({', '.join(self._text_of(value, ()) for value in row)})" for row in relation.expressions)
        return self._named(f"(VALUES {rows})", len(relation.expr_types))

    def _chunks(self, relation: rel.LogicalChunks) -> _Block:
        raise Unprintable("constant rows")

    def _withreference(self, relation: rel.LogicalWithReference) -> _Block:
        name, columns = self._ctes[relation.cte_index]
        if relation.is_recurring:
            raise Unprintable("recurring")
        return self._whole(name, columns)

    # one input

    def _filter(self, relation: rel.LogicalFilter) -> _Block:
        block = self._uncut(self.block(relation.children[0]), _Form.GROUPED)
        conditions = [self._text_of(condition, block.items) for condition in relation.expressions]
        if block.form is _Form.GROUPED:
            block.having += conditions
        else:
            block.where += conditions
        return block

    def _project(self, relation: rel.LogicalProject) -> _Block:
        block = self.block(relation.children[0])
        only_columns = all(isinstance(expression, ex.InputColumn) for expression in relation.expressions)
        is_whole = [one.index for one in relation.expressions if isinstance(one, ex.InputColumn)] == list(
            range(len(block.items))
        )
        if not only_columns or (block.distinct and not is_whole):
            block = self._uncut(block, _Form.GROUPED)
        names = [
            _identifier(expression.alias)
            or (block.names[expression.index] if isinstance(expression, ex.InputColumn) else "")
            for expression in relation.expressions
        ]
        if block.form is _Form.GROUPED and not (block.group or block.having or inputs_of(relation.expressions)):
            block.group = " GROUP BY ()"  # nothing else says that it is one row
        is_computed = block.form is _Form.COLUMNS and not only_columns
        items = [self._expressions.column(expression, block.items) for expression in relation.expressions]
        constants = {
            item
            for item, expression in zip(items, relation.expressions, strict=True)
            if _is_constant(expression, block)
        }
        return replace(
            block,
            items=items,
            constants=frozenset(constants),
            names=_unique(names),
            form=_Form.COMPUTED if is_computed else block.form,
            is_volatile=block.is_volatile or unstable_call(relation.expressions) is not None,
        )

    def _aggregate(self, relation: rel.LogicalAggregate) -> _Block:
        block = self._uncut(self.block(relation.children[0]), _Form.COMPUTED)
        groups = [
            f"CAST({text} AS {group.return_type.sql})" if _is_constant(group, block) else text
            for group in relation.groups
            for text in (self._text_of(group, block.items),)
        ]  # a bare number would be the position of a column
        values = [self._text_of(value, block.items) for value in relation.expressions]
        groupings = [
            f"GROUPING({', '.join(groups[index] for index in listed)})" for listed in relation.grouping_functions
        ]
        sets = relation.grouping_sets
        if len(sets) > 1 or (sets and len(sets[0]) < len(groups)):
            if len(set(groups)) < len(groups):
                raise Unprintable("GROUPING SETS with one expression twice")
            listed = ", ".join(f"({', '.join(groups[index] for index in one)})" for one in sets)
            block.group = f" GROUP BY GROUPING SETS ({listed})"
        elif groups:
            terms = (
                text
                for group, own in zip(relation.groups, groups, strict=True)
                for text in self._fields(group, block) or (own,)
            )
            block.group = f" GROUP BY {', '.join(terms)}"
        elif not values:
            block.group = " GROUP BY ()"
        names = _unique(
            [
                *(_identifier(group.alias) for group in relation.groups),
                *(value.name if isinstance(value, ex.AggregateCall) else "" for value in relation.expressions),
                *("grouping" for _ in groupings),
            ]
        )
        return replace(block, items=[*groups, *values, *groupings], names=names, form=_Form.GROUPED)

    def _window(self, relation: rel.LogicalWindow | rel.LogicalUnnestRows) -> _Block:
        block = self._uncut(self.block(relation.children[0]), _Form.COMPUTED)
        calls = [self._text_of(call, block.items) for call in relation.expressions]
        names = _unique([*block.names, *("" for _ in calls)])
        return replace(block, items=[*block.items, *calls], names=names, form=_Form.DONE)

    def _unnestrows(self, relation: rel.LogicalUnnestRows) -> _Block:
        return self._closed(self._window(relation))  # it makes rows, also where nothing reads the elements

    def _distinct(self, relation: rel.LogicalDistinct) -> _Block:
        block = self._uncut(self.block(relation.children[0]), _Form.GROUPED)
        if relation.distinct_type == "DISTINCT":
            targets = [self._text_of(target, block.items) for target in relation.distinct_targets]
            if targets != block.items and targets:
                raise Unprintable("DISTINCT of some columns")
            return replace(block, distinct="DISTINCT ")
        targets = [self._expressions.term(target, block.items) for target in relation.distinct_targets]
        order = f" ORDER BY {self._orders(relation.order_by.orders, block.items)}" if relation.order_by else ""
        return replace(block, distinct=f"DISTINCT ON ({', '.join(targets)}) ", order=order, form=_Form.DONE)

    def _fields(self, group: ex.AnyExpression, block: _Block) -> list[str]:
        """The fields of a row that differ between rows: DuckDB reads GROUP BY row(a, 1) as GROUP BY a, 1."""
        if not isinstance(group, ex.Call) or group.name != "row":
            return []
        fields = (field for field in group.children if not _is_constant(field, block))
        return [text for one in fields for text in self._fields(one, block) or (self._text_of(one, block.items),)]

    def _sort(self, relation: rel.LogicalSort) -> _Block:
        block = self.block(relation.children[0])
        of_items = all(isinstance(order.expression, ex.InputColumn) for order in relation.orders)
        if block.order or block.limit or (block.distinct and not of_items) or block.form is _Form.DONE:
            block = self._closed(block)
        block = self._settled(block)
        # Nothing is ordered by a constant, which DuckDB refuses as a term.
        orders = [order for order in relation.orders if not _is_constant(order.expression, block)]
        if orders:
            block.order = f" ORDER BY {self._orders(orders, block.items)}"
        return block

    def _limit(self, relation: rel.LogicalLimit) -> _Block:
        block = self.block(relation.children[0])
        if block.limit:
            block = self._closed(block)
        for word, value in (("LIMIT", relation.limit_val), ("OFFSET", relation.offset_val)):
            match value.type:
                case "UNSET":
                    pass
                case "CONSTANT_VALUE":
                    block.limit += f" {word} {value.constant_integer}"
                case "CONSTANT_PERCENTAGE":
                    block.limit += f" {word} {value.constant_percentage}%"
                case _:
                    assert value.expression is not None
                    if isinstance(value.expression, ex.InputColumn):
                        raise Unprintable("LIMIT of a subquery")
                    block.limit += f" {word} ({self._text_of(value.expression, ())})"
        return block

    def _sample(self, relation: rel.LogicalSample) -> _Block:
        raise Unprintable("TABLESAMPLE")

    # two inputs

    def _join(self, relation: rel.LogicalJoin) -> _Block:
        if relation.join_type in ("MARK", "SINGLE"):
            return self._correlated(relation)
        return self._joined(relation, partial(self._conditions, relation))

    def _asofjoin(self, relation: rel.LogicalAsofJoin) -> _Block:
        return self._joined(relation, partial(self._conditions, relation), "ASOF ")

    def _conditionjoin(self, relation: rel.LogicalConditionJoin) -> _Block:
        return self._joined(relation, lambda left, right: [self._text_of(relation.condition, [*left, *right])])

    def _cross(self, relation: rel.LogicalCross) -> _Block:
        left, right = map(self.block, relation.children)
        return _beside(
            self._operand(left, keeps_where=True),
            self._operand(right, keeps_where=True, is_right=True),
            "CROSS JOIN",
        )

    def _positional(self, relation: rel.LogicalPositional) -> _Block:
        left, right = map(self.block, relation.children)
        return _beside(self._operand(left), self._operand(right, is_right=True), "POSITIONAL JOIN")

    def _conditions(self, relation: rel.LogicalJoin, left: Sequence[str], right: Sequence[str]) -> list[str]:
        return [self._condition(condition, left, right) for condition in relation.conditions]

    def _condition(self, condition: rel.JoinCondition, left: Sequence[str], right: Sequence[str]) -> str:
        if condition.right is None:
            return self._text_of(condition.left, [*left, *right])
        return (
            f"{self._text_of(condition.left, left)} {COMPARISONS[condition.comparison]}"
            f" {self._text_of(condition.right, right)}"
        )

    def _joined(
        self,
        relation: rel.LogicalJoin | rel.LogicalConditionJoin,
        conditions: Callable[[Sequence[str], Sequence[str]], list[str]],
        word: str = "",
    ) -> _Block:
        kind = relation.join_type
        left, right = map(self.block, relation.children)
        left = self._operand(left, keeps_where=kind in ("INNER", "LEFT", "SEMI", "ANTI") and not word)
        right = self._operand(right, keeps_where=kind in ("INNER", "RIGHT") and not word, is_right=True)
        on = " AND ".join(conditions(left.items, right.items)) or "true"
        return _beside(
            left,
            replace(right, items=[], names=[]) if kind in ("SEMI", "ANTI") else right,
            f"{word}{_JOINS[kind]}",
            f" ON {on}",
        )

    def _correlated(self, relation: rel.LogicalJoin) -> _Block:
        """MARK and SINGLE as what they are made from: a predicate or value of a correlated subquery."""
        left, right = map(self.block, relation.children)
        left, right = self._uncut(left, _Form.COMPUTED), self._uncut(right, _Form.COMPUTED)
        count = len(relation.mark_types)
        keys = relation.conditions[:count]
        compared = relation.conditions[count:]
        where = [self._condition(condition, left.items, right.items) for condition in keys]

        def subquery(items: list[str], names: list[str]) -> str:
            return replace(right, items=items, names=names, where=[*right.where, *where]).sql

        if relation.join_type == "SINGLE":
            where += [self._condition(condition, left.items, right.items) for condition in compared]
            made = [f"({subquery([item], ['v'])})" for item in right.items]
        elif not compared:
            made = [f"EXISTS ({subquery([], [])})"]
        elif all(one.right is not None and one.comparison == "COMPARE_EQUAL" for one in compared):
            values = [self._text_of(one.right, right.items) for one in compared if one.right is not None]
            inner = subquery(values, _names(len(values)))
            made = [f"(({', '.join(self._text_of(one.left, left.items) for one in compared)}) IN ({inner}))"]
        elif len(compared) == 1 and (other := compared[0].right) is not None:
            (one,) = compared
            inner = subquery([self._text_of(other, right.items)], ["v"])
            sign = COMPARISONS[one.comparison]
            if sign.startswith("IS"):
                raise Unprintable("a mark by IS DISTINCT FROM")
            made = [f"({self._text_of(one.left, left.items)} {sign} ANY ({inner}))"]
        else:
            raise Unprintable("a mark by several comparisons")
        names = _unique([*left.names, *("" for _ in made)])
        return replace(left, form=_Form.COMPUTED, items=[*left.items, *made], names=names)

    def _operand(self, block: _Block, *, keeps_where: bool = False, is_right: bool = False) -> _Block:
        """A block as a side of a join: its source, where that has the same rows and columns."""
        is_plain = block.form is _Form.COLUMNS and not block.is_cut and block.source and not block.ctes
        if not is_plain or (block.where and not keeps_where):
            return self._closed(block)
        if is_right and block.is_join:
            return replace(block, source=f"({block.source})")
        return block

    def _setoperation(self, relation: rel.LogicalUnion | rel.LogicalExcept | rel.LogicalIntersect) -> _Block:
        word = f" {_SET_OPERATIONS[type(relation)]} {'ALL ' if relation.setop_all else ''}"
        texts = [f"({self.block(child).sql})" for child in relation.children]
        return self._named(f"({word.join(texts)})", relation.column_count)

    _union = _except = _intersect = _setoperation

    def _with(self, relation: rel.LogicalWith) -> _Block:
        name = f"w{next(self._numbers)}"
        definition = self.block(relation.children[0])
        columns = _names(len(definition.items))
        self._ctes[relation.table_index] = name, columns
        text = f"{name}({', '.join(columns)}) AS {_MATERIALIZED[relation.materialize]}({definition.sql})"
        block = self.block(relation.children[1])
        return replace(block, ctes=[text, *block.ctes])

    def _recursivewith(self, relation: rel.LogicalRecursiveWith) -> _Block:
        if relation.ref_recurring or relation.key_targets or relation.payload_aggregates:
            raise Unprintable("USING KEY")
        name = f"w{next(self._numbers)}"
        columns = _names(relation.column_count)
        self._ctes[relation.table_index] = name, columns
        first, more = (self.block(child).sql for child in relation.children)
        word = "UNION ALL" if relation.union_all else "UNION"
        alias = f"t{next(self._numbers)}"
        return _Block(
            [f"{alias}.{column}" for column in columns],
            columns,
            f"{name} AS {alias}",
            ctes=[f"{name}({', '.join(columns)}) AS (({first}) {word} ({more}))"],
            is_recursive=True,
        )

    # blocks

    def _named(self, source: str, columns: int) -> _Block:
        alias = f"t{next(self._numbers)}"
        names = _names(columns)
        return _Block([f"{alias}.{name}" for name in names], names, f"{source} AS {alias}({', '.join(names)})")

    def _whole(self, source: str, names: Sequence[str]) -> _Block:
        """All columns of something that has them under these names."""
        alias = f"t{next(self._numbers)}"
        return _Block([f"{alias}.{quoted(name)}" for name in names], list(names), f"{source} AS {alias}")

    def _closed(self, block: _Block) -> _Block:
        return self._whole(f"({block.sql})", block.names)

    def _uncut(self, block: _Block, form: _Form) -> _Block:
        """A block to which clauses can be added, whose items are at most of a form."""
        forms = list(_Form)
        fits = forms.index(block.form) <= forms.index(form)
        return self._settled(block if fits and not block.is_cut else self._closed(block))

    def _settled(self, block: _Block) -> _Block:
        """A block whose items may be written twice."""
        return self._closed(block) if block.is_volatile else block


def _identifier(alias: str) -> str:
    """A name that somebody gave, or none: DuckDB calls an expression by its text, in which the types of values are."""
    return alias if alias.isidentifier() else ""


def _is_constant(expression: ex.AnyExpression, block: _Block) -> bool:
    """Whether an expression over the items of a block is the same for all rows."""
    return all(block.items[index] in block.constants for index in inputs_of([expression]))


def _beside(left: _Block, right: _Block, word: str, on: str = "") -> _Block:
    """The columns of two operands of a join, whose conditions wait."""
    return _Block(
        [*left.items, *right.items],
        _unique([*left.names, *right.names]),
        f"{left.source} {word} {right.source}{on}",
        is_join=True,
        where=[*left.where, *right.where],
        ctes=[*left.ctes, *right.ctes],
        is_recursive=left.is_recursive or right.is_recursive,
    )


def _names(count: int) -> list[str]:
    return [f"c{index}" for index in range(count)]


def _unique(names: Sequence[str]) -> list[str]:
    """Names, each once: a column without a name, or with another's, gets one of its position."""
    taken: set[str] = set()
    made = []
    for index, name in enumerate(names):
        one = name if name and name.casefold() not in taken else f"c{index}"
        while one.casefold() in taken:
            one += "_"
        taken.add(one.casefold())
        made.append(one)
    return made
