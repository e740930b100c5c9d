"""Tightness: for a predicate of supported forms the kept partitions are exactly those that some key of its satisfying
set is in.

The keys are enumerated, not sampled from data: every TINYINT and BOOLEAN there is; for dates and strings, which are too
many, every one that a predicate of this file can tell apart from its neighbours, and so many of each kind that together
they reach every bucket of the few there are. DuckDB says which keys satisfy a predicate, with every value of the column
that is no key. To keep more is loose, to keep less is wrong, and neither is excused; a partition that no key at all is
in counts for nothing.

``SECATEUR_TIGHTNESS_WORLDS`` sets how many random worlds are tried, ``SECATEUR_SEED`` where they begin; a failure names
its seed. The table of the forms, and how often each was met, is printed (``pytest -s``), and written to
``build/tightness.txt``.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import pairwise, product
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pytest

from secateur.partitioning.schemes import HashComponent, RangePartition
from secateur.partitioning.tables import TableDef
from secateur.planner import CreateTable, Planner
from worlds import World, has_range

WORLDS = int(os.environ.get("SECATEUR_TIGHTNESS_WORLDS", "8"))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
STATEMENTS_PER_WORLD = 80
REPORT = Path(__file__).parents[2] / "build" / "tightness.txt"

NUMBERS = range(-3, 7)
DAYS = [date(2024, 1, 1) + timedelta(days=offset) for offset in range(6)]
WORDS = ["", "a", "ab", "b", "ba", "c"]
REGULAR_EXPRESSIONS = ["a", "a|b", "[abc]", "ab?", "b(a|)", "(ab|ba)?", "a{0,1}b?", "c{1}", ""]
ALL_DAYS = [DAYS[0] + timedelta(days=offset) for offset in range(-40, 47)]
ALL_WORDS = sorted(
    {
        *WORDS,
        *("A", "AB", "Ab", "aB", "B", "aa", "ac", "bb"),
        *(word + between + str(number) for word in WORDS for between in ("\x01", "~") for number in range(16)),
        *("\x02" + str(number) for number in range(48)),
    }
)
SPACE: dict[str, tuple[str, list[Any]]] = {
    "a": ("TINYINT", list(range(-128, 128))),
    "z": ("TINYINT", list(range(-128, 128))),
    "f": ("BOOLEAN", [False, True]),
    "c": ("DATE", ALL_DAYS),
    "b": ("VARCHAR", ALL_WORDS),
}
KEYS = ["af", "ac", "ab", "cb", "fcb", "afc", "az"]


class Space(World):
    """A table whose rows are all keys that can be told apart."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.columns = rng.choice(KEYS)
        declared = ", ".join(f"{column} {SPACE[column][0]}" for column in self.columns)
        self.scheme = _scheme(rng, self.columns)
        ddl = (
            f"CREATE TABLE t ({declared}, v INTEGER, w VARCHAR, PRIMARY KEY ({', '.join(self.columns)})) PARTITION BY"
            f" {self.scheme}"
        )
        statement = Planner().prepare(ddl, (), self)
        assert isinstance(statement, CreateTable)
        self.definition: TableDef = statement.tdef
        self.tables["t"] = self.definition
        keys = [key for key in product(*(SPACE[column][1] for column in self.columns)) if self._has_range(key)]
        rows = pa.table(
            {
                column: pa.array(values, self.definition.column(column).type.arrow)
                for column, values in zip(self.columns, zip(*keys, strict=True), strict=True)
            }
        )
        placed = rows.append_column("placed_in", pa.array(self.definition.scheme.partitions_of(rows)))
        self.duck.register("placed", placed)
        self.duck.execute("CREATE TABLE keys AS FROM placed")
        self.inhabited = set(placed["placed_in"].unique().to_pylist())

    def _has_range(self, key: tuple[Any, ...]) -> bool:
        return has_range(self.definition, dict(zip(self.columns, key, strict=True)))

    def hashes_of(self, partition: RangePartition) -> tuple[HashComponent, ...]:
        return self.definition.scheme.hashes if partition.hashes is None else partition.hashes

    def needed(self, where: str, params: list[Any]) -> list[int]:
        """The partitions of the keys that satisfy a predicate with some values of ``v`` and ``w``."""
        source = (
            "keys, (VALUES (NULL), (0), (1), (2)) AS values_of(v)" if "v" in where.replace("values", "") else "keys"
        )
        if ", w)" in where:
            source += ", (VALUES (NULL), (''), ('a')) AS values_of(w)"
        return [
            number
            for (number,) in self.oracle(
                f"SELECT DISTINCT placed_in FROM (SELECT * FROM {source}) t WHERE {where} ORDER BY 1", params
            )
        ]

    def keeps(self, where: str, params: list[Any]) -> list[int]:
        statement = self.prepare(f"SELECT * FROM t WHERE {where}", params)
        (kept,) = self.kept(statement.plan, statement.params or ())
        return [number for number in kept if number in self.inhabited]


def _scheme(rng: random.Random, columns: str) -> str:
    parts = []
    free = list(columns)
    rng.shuffle(free)
    while free and rng.random() < 0.75:
        count = min(len(free), rng.choice([1, 1, 2]))
        parts.append(f"HASH ({', '.join(sorted(free[:count]))}) PARTITIONS {rng.randint(2, 5)}")
        free = free[count:]
    if not parts or rng.random() < 0.6:
        parts.append(_ranges(rng, columns))
    return ", ".join(parts)


def _ranges(rng: random.Random, columns: str) -> str:
    chosen = rng.sample(columns, rng.choice([1, 1, 2]))
    literals = [Forms.LITERALS[column] for column in chosen]
    keys = sorted(set(product(*(range(len(values)) for values in literals))))
    bounds = sorted(rng.sample(keys, min(len(keys), rng.randint(1, 5))))
    texts = [
        "(" + ", ".join(values[position] for values, position in zip(literals, bound, strict=True)) + ")"
        for bound in bounds
    ]
    if rng.random() < 0.4:
        return f"RANGE ({', '.join(chosen)}) SPLIT AT ({', '.join(texts)})"
    edges = ["", *texts, ""]
    ranges = []
    for lower, upper in pairwise(edges):
        if rng.random() < 0.3 and ranges:
            continue
        own = rng.choice(["", "", "", " NO HASH", f" HASH ({rng.choice(columns)}) PARTITIONS 3"])
        ranges.append(f"PARTITION {lower}{' <= ' if lower else ''}VALUES{' < ' if upper else ''}{upper}{own}")
    return f"RANGE ({', '.join(chosen)}) ({', '.join(ranges)})"


class Forms:
    """Predicates of named forms; ``used`` are those of the last one."""

    LITERALS: ClassVar[dict[str, list[str]]] = {
        "a": [str(number) for number in NUMBERS],
        "z": [str(number) for number in NUMBERS],
        "f": ["FALSE", "TRUE"],
        "c": [f"DATE '{day}'" for day in DAYS],
        "b": [f"'{word}'" for word in WORDS],
    }
    VALUES: ClassVar[dict[str, list[Any]]] = {
        "a": list(NUMBERS),
        "z": list(NUMBERS),
        "f": [False, True],
        "c": DAYS,
        "b": WORDS,
    }

    def __init__(self, rng: random.Random, columns: str) -> None:
        self.rng = rng
        self.columns = columns
        self.used: set[str] = set()
        self.params: list[Any] = []

    def predicate(self, depth: int) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return self.leaf()
        match rng.choice(["AND", "AND", "OR", "OR", "NOT"]):
            case "NOT":
                self.used.add("NOT (...)")
                return f"NOT ({self.predicate(depth - 1)})"
            case word:
                self.used.add(word)
                return f"({self.predicate(depth - 1)} {word} {self.predicate(depth - 1)})"

    def leaf(self) -> str:
        rng = self.rng
        name, make = rng.choice(list(self._forms()))
        self.used.add(name)
        return make()

    def _forms(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Every form that these columns have, with its name."""
        rng, column = self.rng, self.rng.choice(self.columns)
        value = lambda: rng.choice(self.LITERALS[column])  # noqa: E731
        values = lambda: ", ".join(value() for _ in range(rng.randint(1, 4)))  # noqa: E731
        for operator in ("=", "<", "<=", ">", ">="):
            yield operator, lambda operator=operator: f"{column} {operator} {value()}"
            yield f"{operator} parameter", lambda operator=operator: f"{column} {operator} {self.parameter(column)}"
        yield "= mirrored", lambda: f"{value()} = {column}"
        yield "<>", lambda: f"{column} <> {value()}"
        yield "<> parameter", lambda: f"{column} <> {self.parameter(column)}"
        yield "IN", lambda: f"{column} IN ({values()})"
        yield "IN with NULL", lambda: f"{column} IN ({values()}, NULL)"
        yield "IN parameters", lambda: f"{column} IN ({self.parameter(column)}, {self.parameter(column)})"
        yield "NOT IN", lambda: f"{column} NOT IN ({values()})"
        yield "NOT IN with NULL", lambda: f"{column} NOT IN ({values()}, NULL)"
        yield "BETWEEN", lambda: f"{column} BETWEEN {value()} AND {value()}"
        yield (
            "BETWEEN parameters",
            lambda: f"{column} BETWEEN {self.parameter(column)} AND {self.parameter(column, at_least=self.params[-1])}",
        )
        yield "NOT BETWEEN", lambda: f"{column} NOT BETWEEN {value()} AND {value()}"
        yield "IS NULL", lambda: f"{column} IS NULL"
        yield "IS NOT NULL", lambda: f"{column} IS NOT NULL"
        yield "= NULL", lambda: f"{column} = NULL"
        yield "IS NOT DISTINCT FROM", lambda: f"{column} IS NOT DISTINCT FROM {value()}"
        yield "IS DISTINCT FROM", lambda: f"{column} IS DISTINCT FROM {value()}"
        yield "(...) IS TRUE", lambda: f"({column} < {value()}) IS TRUE"
        yield "(...) IS NOT TRUE", lambda: f"({column} < {value()}) IS NOT TRUE"
        yield "constant", lambda: rng.choice(["TRUE", "FALSE", "NULL", "1 = 2"])
        yield "another column", lambda: rng.choice(["v = 1", "v IS NULL", "v > 0", "v IS DISTINCT FROM 2", "v <> 1"])
        yield "list parameter", lambda: f"{column} = ANY({self.list_parameter(column)})"
        yield "NOT IN with NULL in a list", lambda: f"{column} NOT IN [{values()}, NULL]"
        yield "IN [...]", lambda: f"{column} IN [{values()}]"
        yield "IN [...] with NULL", lambda: f"{column} IN [NULL, {values()}]"
        yield "= ANY([...])", lambda: f"{column} = ANY([{values()}])"
        yield "IN (SELECT unnest([...]))", lambda: f"{column} IN (SELECT unnest([{values()}]))"
        yield "value IN columns", lambda: f"{value()} IN ({column})"
        yield "value BETWEEN columns", lambda: f"{value()} BETWEEN {column} AND {column}"
        yield "(...) IS DISTINCT FROM TRUE", lambda: f"({column} > {value()}) IS DISTINCT FROM TRUE"
        yield "(...) = FALSE", lambda: f"({column} >= {value()}) = FALSE"
        yield "CASE, a condition", lambda: f"CASE WHEN {column} = {value()} THEN TRUE ELSE {column} < {value()} END"
        yield (
            "CASE, compared",
            lambda: f"CASE WHEN {column} < {value()} THEN 1 WHEN {column} = {value()} THEN 2 END >= 2",
        )
        yield (
            "CASE of a value",
            lambda: f"CASE {column} WHEN {value()} THEN 'x' WHEN {value()} THEN 'y' ELSE 'z' END = 'y'",
        )
        yield "IF", lambda: f"if({column} <= {value()}, {column}, NULL) = {value()}"
        yield "COALESCE", lambda: f"coalesce({column}, {value()}) = {value()}"
        yield "COALESCE of conditions", lambda: f"coalesce(NULL, {column} = {value()}, FALSE)"
        yield "NULLIF", lambda: f"nullif({column}, {value()}) <= {value()}"
        if len(self.columns) > 1:
            pair = rng.sample(self.columns, 2)
            row = lambda: f"({', '.join(rng.choice(self.LITERALS[part]) for part in pair)})"  # noqa: E731
            yield "row =", lambda: f"({', '.join(pair)}) = {row()}"
            yield "row IN", lambda: f"({', '.join(pair)}) IN ({row()}, {row()}, {row()})"
            yield "row NOT IN", lambda: f"({', '.join(pair)}) NOT IN ({row()}, {row()})"
            yield "row <>", lambda: f"({', '.join(pair)}) <> {row()}"
            yield "row BETWEEN", lambda: f"({', '.join(pair)}) BETWEEN {row()} AND {row()}"
            yield (
                "row = parameters",
                lambda: f"({', '.join(pair)}) = ({self.parameter(pair[0])}, {self.parameter(pair[1])})",
            )
            yield "row < ... least value", lambda: f"({', '.join(pair)}, w) < ({row()[1:-1]}, '')"
            for operator in ("<", "<=", ">", ">="):
                yield f"row {operator}", lambda operator=operator: f"({', '.join(pair)}) {operator} {row()}"
        if column in "az":
            yield "integer = decimal", lambda: f"{column} = {rng.choice(['1.0', '1.5', '2e0'])}"
            yield (
                "integer < decimal",
                lambda: f"{column} {rng.choice(['<', '>='])} {rng.choice(['1.5', '-0.5', '2.0'])}",
            )
            yield "integer = text", lambda: f"{column} = '{rng.choice(NUMBERS)}'"
            yield (
                "integer out of its type",
                lambda: f"{column} {rng.choice(['=', '<', '>'])} {rng.choice([1000, -1000])}",
            )
            yield "folded", lambda: f"{column} = {rng.choice(['1 + 1', '2 * 3 - 1', 'abs(-2)', 'CAST(3 AS BIGINT)'])}"
            shifted = rng.choice([f"{column} + 1", f"2 - {column}", f"-{column}"])
            scaled = rng.choice(["{} * 2", "1 - 3 * {}", "2 * ({} - 1)"]).format(f"{column}::INTEGER")
            yield "scaled", lambda: f"{scaled} {rng.choice(['=', '<', '>=', '<>'])} {rng.choice(NUMBERS)}"
            yield "abs", lambda: f"abs({column}::INTEGER) {rng.choice(['=', '<', '>='])} {rng.choice(NUMBERS)}"
            yield "cast to DOUBLE", lambda: f"{column}::DOUBLE {rng.choice(['=', '<', '>='])} {rng.choice(NUMBERS)}"
            carried = ["= v + 1", "IN (v, v * 2)", "BETWEEN v - 1 AND v", "= CASE v WHEN 1 THEN 5 ELSE 6 END"]
            yield "value of another column", lambda: f"(v = {rng.choice('012')} AND {column} {rng.choice(carried)})"
            yield "shifted", lambda: f"{shifted} {rng.choice(['=', '<', '>='])} {rng.choice(NUMBERS)}"
            yield (
                "cast to VARCHAR",
                lambda: f"CAST({column} AS VARCHAR) IN ('{rng.choice(NUMBERS)}', '{rng.choice(NUMBERS)}', '01')",
            )
            yield (
                "cast to BIGINT",
                lambda: f"{column}::BIGINT {rng.choice(['=', '<', '>'])} {rng.choice([*NUMBERS, 1000])}",
            )
        if column == "c":
            yield "date_trunc", lambda: f"date_trunc('month', c) {rng.choice(['=', '<', '>='])} DATE '2024-01-01'"
            yield "date + n", lambda: f"c + 2 {rng.choice(['=', '<'])} {value()}"
            yield "date = text", lambda: f"c = '{rng.choice(DAYS)}'"
            yield (
                "date < timestamp",
                lambda: (
                    f"c {rng.choice(['<', '>=', '='])} TIMESTAMP '{rng.choice(DAYS)}"
                    f" {rng.choice(['00:00:00', '12:00:00'])}'"
                ),
            )
            yield (
                "folded",
                lambda: (
                    f"c {rng.choice(['=', '<'])}"
                    f" {rng.choice(['''DATE '2024-01-01' + 2''', '''DATE '2024-01-01' + INTERVAL 1 DAY'''])}"
                ),
            )
        if column == "b":
            yield "LIKE", lambda: f"b LIKE '{rng.choice(['a%', 'ab%', 'b', 'b%', '%'])}'"
            yield "NOT LIKE", lambda: f"b NOT LIKE '{rng.choice(['a%', 'ab', 'b%', '%'])}'"
            yield "ILIKE", lambda: f"b ILIKE '{rng.choice(['A', 'aB', 'ab', 'B', ''])}'"
            yield "GLOB", lambda: f"b GLOB '{rng.choice(['a*', '[ab]', 'a[a-c]', 'ba', 'b[a]', '*'])}'"
            yield "SIMILAR TO", lambda: f"b SIMILAR TO '{rng.choice(REGULAR_EXPRESSIONS)}'"
            yield "NOT SIMILAR TO", lambda: f"b NOT SIMILAR TO '{rng.choice(REGULAR_EXPRESSIONS)}'"
            yield "~", lambda: f"b ~ '^({rng.choice(REGULAR_EXPRESSIONS)}){rng.choice(['$', ''])}'"
            yield "~ parameter", lambda: f"b ~ {self.pattern_parameter()}"
            options = ["'A', 'i'", "'a|B', 'i'", "'a', 'c'", "'A', 'c'"]
            yield "regexp_full_match with options", lambda: f"regexp_full_match(b, {rng.choice(options)})"
            yield "starts_with", lambda: f"starts_with(b, {value()})"
            # What % stands for here is nothing, because more of it would be more than a million texts.
            liked = [
                "b LIKE 'a%' AND length(b) = 1",
                "b LIKE 'ba%' AND length(b) < 3",
                "b LIKE 'ab%' AND length(b) < 2",
            ]
            yield "LIKE with a bound of the length", lambda: f"({rng.choice(liked)})"
            repeated, length = ["a*b*", "b?a*", "[ab]+", "(ab)*c?"], [0, 1, 2]
            yield (
                "SIMILAR TO with a bound of the length",
                lambda: f"(b SIMILAR TO '{rng.choice(repeated)}' AND length(b) <= {rng.choice(length)})",
            )
            yield (
                "folded",
                lambda: f"b = {rng.choice(['''lower('AB')''', '''concat('b', 'a')''', '''substring('xay', 2, 1)'''])}",
            )
        if column == "f":
            yield "boolean", lambda: rng.choice(["f", "NOT f", "f IS TRUE", "f IS NOT FALSE", "f IS NOT TRUE"])
        if self.columns == "az":
            bounds = ["= 3", "IN (1, 2)", "BETWEEN -1 AND 4", "> 125"]
            yield "column = column", lambda: f"(a = z AND {rng.choice('az')} {rng.choice(bounds)})"
            yield (
                "column = column, parameters",
                lambda: f"(a = z AND {rng.choice('az')} IN ({self.parameter('a')}, {self.parameter('z')}))",
            )

    def parameter(self, column: str, at_least: Any = None) -> str:
        self.params.append(
            self.rng.choice([value for value in self.VALUES[column] if at_least is None or value >= at_least])
        )
        return f"${len(self.params)}"

    def pattern_parameter(self) -> str:
        self.params.append(f"^({self.rng.choice(REGULAR_EXPRESSIONS)})$")
        return f"${len(self.params)}"

    def list_parameter(self, column: str) -> str:
        self.params.append([self.rng.choice(self.VALUES[column]) for _ in range(self.rng.randint(1, 4))])
        return f"${len(self.params)}"


@pytest.fixture(scope="module")
def tally() -> Iterator[Counter[str]]:
    met: Counter[str] = Counter()
    yield met
    lines = [f"{'form':40} {'statements':>10}", *(f"{form:40} {count:10,}" for form, count in sorted(met.items()))]
    text = "\n".join(lines)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text + "\n")
    print(f"\n{text}")


@pytest.mark.parametrize("seed", range(WORLDS))
@pytest.mark.sampled(one_in=6)
def test_the_kept_partitions_are_those_of_the_satisfying_keys(seed: int, tally: Counter[str]) -> None:
    rng = random.Random(FIRST_SEED + seed)
    space = Space(rng)
    for _ in range(STATEMENTS_PER_WORLD):
        forms = Forms(rng, "".join(space.definition.scheme.columns))
        where = forms.predicate(rng.choice([0, 1, 2]))
        try:
            needed = space.needed(where, forms.params)
        except duckdb.Error:
            continue
        kept = space.keeps(where, forms.params)
        told = (
            f"seed {FIRST_SEED + seed}: {where} with {forms.params!r} over {space.scheme}: kept {kept}, needed {needed}"
        )
        assert set(needed) <= set(kept), f"rows are lost: {told}"
        assert kept == needed, f"more is kept than needed: {told}"
        tally.update(forms.used)
