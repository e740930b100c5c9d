from __future__ import annotations

import pytest

from secateur.errors import TopologyChangedError
from secateur.partitioning.pruning import All, PartitionTree
from secateur.partitioning.schemes import PartitionScheme, build_scheme, split_at
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type

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
    data = tree(scheme(1)).to_wire(by_reference=True)
    assert isinstance(data["scheme"], dict)
    assert PartitionTree.from_wire(data) == tree(scheme(1))


def test_a_reference_is_followed_to_the_one_scheme() -> None:
    original = table(scheme(1, 2).referred("book/1.1"))
    here = TableDef.from_wire(original.to_wire())
    brief = tree(original.scheme).to_wire(by_reference=True)
    assert brief["scheme"] == "book/1.1"
    assert PartitionTree.from_wire(brief).scheme is here.scheme
    assert TableDef.from_wire(original.to_wire(by_reference=True)).scheme is here.scheme
    assert TableDef.from_wire(original.to_wire()).scheme is here.scheme


def test_the_book_holds_nothing_alive() -> None:
    brief = tree(scheme(3).referred("book/2.1")).to_wire(by_reference=True)
    here = TableDef.from_wire(table(scheme(3).referred("book/2.1")).to_wire())
    assert PartitionTree.from_wire(brief).scheme is here.scheme
    del here
    with pytest.raises(
        TopologyChangedError, match="the ranges of table t are not known here, or have changed"
    ) as raised:
        PartitionTree.from_wire(brief)
    assert raised.value.details == {"table": "t"}


def test_what_is_resolved_is_kept() -> None:
    original = scheme(1, 2, 3)
    original.resolve()
    renamed = original.referred("book/3.1").in_group("elsewhere")
    assert (renamed.affinity_group(), renamed.structure()) == ("elsewhere", original.structure())
    assert renamed.ranges() is original.ranges()
