from __future__ import annotations

import pickle
from datetime import date, datetime
from typing import Any
from uuid import UUID

import pytest

from secateur.errors import ParameterError
from secateur.partitioning.pruning import (
    All,
    AllOf,
    AnyOf,
    Box,
    Choice,
    Comparison,
    Constant,
    Constraint,
    Everywhere,
    Keys,
    Node,
    Nothing,
    Operand,
    Parameter,
    ParameterComparison,
    ParameterList,
    Partitions,
    PartitionTree,
    Satisfiable,
    points,
    unite,
)
from secateur.partitioning.schemes import HashComponent, PartitionScheme, build_scheme, split_at
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode


def hashed(type_text: str = "VARCHAR", partitions: int = 271) -> PartitionScheme:
    return build_scheme(
        hashes=[HashComponent(("k",), partitions)], types={"k": parse_type(type_text)}, primary_key=("k",), table="t"
    )


def composite() -> PartitionScheme:
    types = {"a": parse_type("BIGINT"), "b": parse_type("VARCHAR"), "c": parse_type("DATE")}
    return build_scheme(
        hashes=[HashComponent(("a", "b"), 16), HashComponent(("c",), 3)],
        types=types,
        primary_key=("a", "b", "c"),
        table="t",
    )


def one_of(*operands: Operand, comparison: Comparison = Comparison.IN) -> Constraint:
    return Constraint((Choice(tests=(ParameterComparison(comparison, operands),)),))


def tree(scheme: PartitionScheme, root: Node) -> PartitionTree:
    return PartitionTree("orders", scheme, root, scheme.live_partition_count, 8 * scheme.live_partition_count)


def keys(**constraints: Constraint) -> Keys:
    return Keys(Box.of(constraints))


ONE_KEY = keys(k=one_of(Parameter(0)))


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("VARCHAR", "C2"),
        ("VARCHAR", ""),
        ("VARCHAR", "日本"),
        ("INTEGER", -7),
        ("UBIGINT", 2**64 - 1),
        ("BOOLEAN", True),
        ("BLOB", b"\x00\xff"),
        ("DATE", date(2024, 2, 29)),
        ("TIMESTAMP", datetime(2024, 2, 29, 1, 2, 3, 4)),
        ("UUID", UUID(int=5)),
    ],
)
def test_one_key_is_in_the_partition_that_the_scheme_says(type_text: str, value: Any) -> None:
    scheme = hashed(type_text)
    bound = tree(scheme, ONE_KEY).bind([value])
    assert list(bound.ids) == [scheme.partition_of({"k": value})]
    assert len(bound) == 1
    assert not bound.is_all
    assert not bound.is_empty


@pytest.mark.parametrize(
    ("type_text", "value", "expected"),
    [
        pytest.param("VARCHAR", None, 0, id="NULL equals nothing"),
        pytest.param("VARCHAR", 5, 271, id="a number casts the text column"),
        pytest.param("VARCHAR", "\ud800", 271, id="a lone surrogate has no hash"),
        pytest.param("VARCHAR", object(), 271, id="any object"),
        pytest.param("INTEGER", 2**40, 0, id="outside of the type"),
        pytest.param("INTEGER", 1.5, 0, id="a fraction"),
        pytest.param("INTEGER", 1.0, 1, id="a whole double"),
        pytest.param("INTEGER", True, 1, id="a boolean is 0 or 1"),
        pytest.param("INTEGER", "x", 271, id="DuckDB raises on it"),
        pytest.param("DATE", datetime(2024, 1, 1, 5), 0, id="a time of day is no date"),
        pytest.param("DATE", datetime(2024, 1, 1), 1, id="midnight is"),
        pytest.param("BIGINT", float("nan"), 271, id="NaN"),
    ],
)
def test_binding_never_raises_over_a_value(type_text: str, value: Any, expected: int) -> None:
    assert len(tree(hashed(type_text), ONE_KEY).bind([value])) == expected


def test_several_columns_take_the_fast_form_and_agree_with_the_scheme() -> None:
    scheme = composite()
    whole = tree(scheme, keys(a=one_of(Parameter(2)), b=one_of(Parameter(0)), c=one_of(Parameter(1))))
    row = {"a": 5, "b": "x", "c": date(2024, 1, 1)}
    assert list(whole.bind([row["b"], row["c"], row["a"]]).ids) == [scheme.partition_of(row)]
    assert list(whole.bind([row["b"], "2024-01-01", 5.0]).ids) == [scheme.partition_of(row)]
    assert len(whole.bind([7, row["c"], row["a"]])) == 16


def test_a_list_unites_its_elements() -> None:
    scheme = hashed()
    bound = tree(scheme, keys(k=one_of(Parameter(0), Constant("C9"), Parameter(1)))).bind(["C2", None])
    assert list(bound.ids) == sorted({scheme.partition_of({"k": key}) for key in ("C2", "C9")})


def test_conjunctions_of_parameters_meet() -> None:
    scheme = hashed("BIGINT")
    both = keys(k=one_of(Parameter(0), Constant(1)).intersect(one_of(Parameter(1), Constant(2))))
    assert tree(scheme, both).bind([3, 4]).is_empty
    assert list(tree(scheme, both).bind([2, 4]).ids) == [scheme.partition_of({"k": 2})]


def test_ranges_of_parameters_are_enumerated_at_binding() -> None:
    scheme = hashed("INTEGER", 50)
    between = tree(scheme, keys(k=one_of(Parameter(0), Parameter(1), comparison=Comparison.BETWEEN)))
    assert list(between.bind([3, 4]).ids) == sorted({scheme.partition_of({"k": k}) for k in (3, 4)})
    assert between.bind([3, 10**6]).is_all
    assert between.bind([4, 3]).is_empty


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (All(), list(range(5))),
        (Nothing(), []),
        (Partitions((1, 3)), [1, 3]),
        (AnyOf((Partitions((1,)), ONE_KEY)), [1, 2]),
        (AllOf((Partitions((1, 2)), ONE_KEY)), [2]),
        (AnyOf((Partitions((1,)), keys(k=one_of(Parameter(1))))), list(range(5))),
        (AllOf((Partitions((1,)), keys(k=one_of(Parameter(1))))), [1]),
    ],
    ids=["all", "none", "constants", "or", "and", "or with unbounded", "and with unbounded"],
)
def test_nodes_combine(root: Node, expected: list[int]) -> None:
    scheme = hashed("BIGINT", 5)
    key = next(k for k in range(100) if scheme.partition_of({"k": k}) == 2)
    assert list(tree(scheme, root).bind([key, "no number"]).ids) == expected


def test_a_replicated_table_is_everywhere() -> None:
    everywhere = PartitionTree("airlines", PartitionScheme(), Everywhere(), 1, 8)
    assert list(everywhere.bind([]).ids) == [0]
    assert str(everywhere) == "airlines: any"


def test_an_unknown_partition_function_prunes_nothing() -> None:
    known = hashed()
    unknown = PartitionScheme(known.hashes, known.range, known.types, "xxhash128/9")
    assert tree(unknown, ONE_KEY).bind(["C2"]).is_all


def test_a_missing_parameter_is_said() -> None:
    with pytest.raises(ParameterError, match="more than the 0 parameters"):
        tree(hashed(), ONE_KEY).bind([])


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (Partitions((17,)), "orders: (p17)"),
        (AnyOf((Partitions((17,)), ONE_KEY)), "orders: (p17 | $1)"),
        (All(), "orders: all"),
        (Nothing(), "orders: none"),
        (AllOf((Partitions((1, 2)), ONE_KEY)), "orders: ((p1 | p2) & ($1))"),
        (keys(k=one_of(Parameter(1), Constant("C2"))), "orders: (p128 | $2)"),
        (keys(k=one_of(Parameter(0), comparison=Comparison.LESS)), "orders: (< $1)"),
        (keys(k=one_of(Parameter(0), Constant("z"), comparison=Comparison.BETWEEN)), "orders: ([$1, 'z'])"),
        (Partitions(tuple(range(20))), "orders: (" + " | ".join(f"p{p}" for p in range(15)) + " | 5 more)"),
    ],
    ids=["one", "IEP-24", "all", "none", "and", "list", "comparison", "between", "many"],
)
def test_the_text_form(root: Node, expected: str) -> None:
    assert str(tree(hashed(), root)) == expected


def test_the_text_form_of_a_composite_key_shows_what_is_not_bound() -> None:
    root = keys(a=one_of(Parameter(0)), b=Constraint((Choice(points(["x", "y"])),)))
    assert str(tree(composite(), root)) == "orders: (($1, {'x', 'y'}, *))"


@pytest.mark.parametrize(
    "scheme",
    [
        hashed("BIGINT", 5),
        build_scheme(
            range_columns=("k",),
            ranges=split_at([(3,)]),
            types={"k": parse_type("BIGINT")},
            primary_key=("k",),
            table="t",
        ),
    ],
    ids=["hash", "range"],
)
def test_trees_survive_msgpack_and_pickle(scheme: PartitionScheme) -> None:
    one = tree(scheme, AnyOf((Partitions((1,)), keys(k=one_of(Parameter(0), Constant(date(2024, 1, 1)))))))
    for copy in (decode(encode(one), PartitionTree), pickle.loads(pickle.dumps(one))):
        assert copy == one
        assert list(copy.bind([4]).ids) == list(one.bind([4]).ids)


def test_constancy() -> None:
    assert tree(hashed(), unite((Partitions((1,)), Partitions((2,))))).is_constant
    assert not tree(hashed(), unite((Partitions((1,)), ONE_KEY))).is_constant


def test_a_tree_is_single_where_one_value_is_named_for_each_column() -> None:
    both = keys(a=Constraint((Choice(points([1])),)), b=one_of(Parameter(0)), c=one_of(Parameter(1)))
    one_missing = keys(a=one_of(Parameter(0)), c=one_of(Parameter(1)))
    several = keys(k=one_of(Parameter(0), Parameter(1)))
    a_list = keys(k=one_of(ParameterList(0)))
    a_range = keys(k=one_of(Parameter(0), comparison=Comparison.LESS_EQUAL))
    assert tree(composite(), both).is_single
    assert not tree(composite(), one_missing).is_single
    orders = hashed()
    for single in (ONE_KEY, Nothing(), Partitions((3,)), AllOf((several, ONE_KEY))):
        assert tree(orders, single).is_single, single
    for others in (several, a_list, a_range, All(), Partitions((3, 4)), AnyOf((Partitions((3,)), ONE_KEY))):
        assert not tree(orders, others).is_single, others


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("c", (3, 5), id="a value is left"),
        pytest.param("a", (5,), id="the constant excludes it"),
        pytest.param(None, (5,), id="nothing equals NULL"),
        pytest.param(7, (3, 5), id="of another type nothing is known"),
    ],
)
def test_parameters_that_contradict_a_column_beside_the_key_leave_nothing(name: Any, expected: tuple[int, ...]) -> None:
    above = Constraint(
        (Choice(tests=(ParameterComparison(Comparison.GREATER, (Constant("b"),)),)), *one_of(Parameter(0)).choices)
    )
    guarded = Satisfiable(((parse_type("VARCHAR"), above),), Partitions((3,)))
    both = tree(hashed(), AnyOf((Partitions((5,)), guarded)))
    assert both.bind([name]).ids == expected
    assert not both.is_constant
    assert str(both) == "orders: (p5 | (p3) or none)"
    assert decode(encode(both), PartitionTree).bind([name]).ids == expected
