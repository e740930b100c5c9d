"""Large schemes travel in columns: few bytes and few objects, however many ranges there are."""

from __future__ import annotations

import gc
from datetime import date
from typing import Any

import msgpack
import pytest

from secateur.partitioning.schemes import (
    HashComponent,
    PartitionScheme,
    RangeComponent,
    RangePartition,
    RetiredRange,
    build_scheme,
    no_garbage_collection,
    split_at,
)
from secateur.partitioning.tables import Column, TableDef, TableDefinition
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode

RANGES = 20_000


def table(scheme: PartitionScheme) -> TableDef:
    columns = tuple(Column(name, type_, nullable=False) for name, type_ in scheme.types)
    return TableDef("t", 1, columns, tuple(column.name for column in columns), scheme)


def many(reference: str) -> PartitionScheme:
    scheme = build_scheme(
        range_columns=["k"],
        ranges=split_at([(bound,) for bound in range(1, RANGES)]),
        types={"k": parse_type("BIGINT")},
        primary_key=["k"],
        table="t",
    )
    return scheme.referred(reference)


def test_a_definition_has_few_bytes_and_few_objects_for_each_range() -> None:
    sent = encode(TableDefinition.of(table(many("large/1.1"))))
    assert len(sent) < 25 * RANGES
    objects = 0

    def count(value: Any) -> Any:
        nonlocal objects
        objects += 1
        return value

    msgpack.unpackb(sent, list_hook=count, ext_hook=lambda _, value: count(value))
    assert objects < 50


@pytest.mark.parametrize(
    "component",
    [
        RangeComponent(("a",), (RangePartition(0, None, (3,)), RangePartition(1, (3,), None, "last"))),
        RangeComponent(
            ("d", "a"),
            (
                RangePartition(4, (date(2024, 1, 1), -5), (date(2024, 2, 1), 0), None, ()),
                RangePartition(1, (date(2024, 3, 1), 0), (date(2024, 4, 1), 7), "march", (HashComponent(("b",), 3),)),
                RangePartition(2, (date(2024, 4, 1), 7), None),
            ),
            (RetiredRange(0, 4), RetiredRange(3, 2)),
            RangePartition(5, None, None, "rest"),
        ),
        RangeComponent(("a",), ()),
    ],
)
@pytest.mark.parametrize("group", [None, "elsewhere"])
def test_what_arrives_is_what_was_sent(component: RangeComponent, group: str | None) -> None:
    types = tuple((name, parse_type("DATE" if name == "d" else "BIGINT")) for name in ("a", "b", "d"))
    sent = PartitionScheme((HashComponent(("b",), 4, 7),), component, types).referred("large/2.1")
    if group is not None:
        sent = sent.in_group(group)
    bytes_sent, bare, structure = encode(TableDefinition.of(table(sent))), encode(sent), sent.structure()
    del sent  # so that this process has no scheme of that reference
    arrived = decode(bytes_sent, TableDefinition).table.scheme
    assert encode(arrived) == bare
    assert (arrived.group, arrived.structure()) == (group, structure)


def test_a_receiver_that_has_the_scheme_keeps_its_own() -> None:
    here = table(many("large/3.1"))
    assert decode(encode(TableDefinition.of(here)), TableDefinition).table.scheme is here.scheme


def test_collections_go_on_after_blocks_without() -> None:
    assert gc.isenabled()
    first, second = no_garbage_collection(), no_garbage_collection()
    with first:
        second.__enter__()  # in another thread, say
        assert not gc.isenabled()
    assert gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()
    gc.disable()
    try:
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_block_that_begins_while_another_thread_ends_one_leaves_collections_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, is_enabled = no_garbage_collection(), gc.isenabled
    other.__enter__()

    def looked_while_the_other_ends() -> bool:
        monkeypatch.undo()
        found = is_enabled()
        other.__exit__(None, None, None)
        return found

    monkeypatch.setattr(gc, "isenabled", looked_while_the_other_ends)
    try:
        with no_garbage_collection():
            pass
        assert gc.isenabled()
    finally:
        gc.enable()
