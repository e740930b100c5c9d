from __future__ import annotations

import pickle

import pytest

from secateur.errors import TopologyChangedError
from secateur.partitioning.pruning import All, PartitionTree
from secateur.partitioning.schemes import PartitionScheme, build_scheme, split_at
from secateur.partitioning.tables import Column, TableDef, TableDefinition
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode

BIGINT = parse_type("BIGINT")


def scheme(*splits: int) -> PartitionScheme:
    return build_scheme(
        range_columns=["k"],
        ranges=split_at([(split,) for split in splits]),
        types={"k": BIGINT},
        primary_key=["k"],
        table="t",
    )


def table(of: PartitionScheme) -> TableDef:
    return TableDef("t", 1, (Column("k", BIGINT, nullable=False),), ("k",), of)


def tree(of: PartitionScheme) -> PartitionTree:
    return PartitionTree("t", of, All(), of.live_partition_count, 8)


def test_a_scheme_without_reference_always_travels_whole() -> None:
    sent = tree(scheme(1))
    assert isinstance(sent.scheme_or_reference, PartitionScheme)
    assert decode(encode(sent), PartitionTree) == sent


def test_a_reference_is_followed_to_the_one_scheme() -> None:
    original = scheme(1, 2).referred("book/1.1")
    again = decode(encode(original), PartitionScheme)
    assert again == original
    for sent in (tree(original), tree(again), table(original), table(again)):
        assert sent.scheme_or_reference == "book/1.1"
        assert decode(encode(sent), type(sent)) == sent
        assert decode(encode(sent), type(sent)).scheme is original


def test_a_definition_brings_the_scheme_and_a_bare_table_does_not() -> None:
    made = table(scheme(3).referred("book/2.1"))
    whole, bare = encode(TableDefinition.of(made)), encode(made)
    del made
    with pytest.raises(
        TopologyChangedError, match="the ranges of table t are not known here, or have changed"
    ) as raised:
        decode(bare, TableDef)
    assert raised.value.details == {"table": "t"}
    here = decode(whole, TableDefinition)
    assert decode(bare, TableDef).scheme is here.table.scheme
    assert here.table.scheme == scheme(3).referred("book/2.1")
    del here
    with pytest.raises(TopologyChangedError):  # the book holds nothing alive
        decode(bare, TableDef)


def test_a_definition_for_who_has_the_scheme_or_needs_none_leaves_it_out() -> None:
    large = table(scheme(4).referred("book/4.1"))
    assert TableDefinition.of(large, known="book/4.1") == TableDefinition(None, None, large)
    sent = TableDefinition.of(large, known="book/4.0")
    assert sent.whole is not None
    assert sent.whole.scheme is large.scheme
    assert TableDefinition.of(table(scheme(4))) == TableDefinition(None, None, table(scheme(4)))


def test_a_pickled_table_brings_its_scheme() -> None:
    data = pickle.dumps(table(scheme(5).referred("book/5.1")))
    assert pickle.loads(data).scheme == scheme(5).referred("book/5.1")


def test_what_is_resolved_is_kept() -> None:
    original = scheme(1, 2, 3)
    original.resolve()
    renamed = original.referred("book/3.1").in_group("elsewhere")
    assert (renamed.affinity_group(), renamed.structure()) == ("elsewhere", original.structure())
    assert renamed.ranges() is original.ranges()
