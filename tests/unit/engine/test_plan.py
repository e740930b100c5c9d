"""Plans of SELECTs as values: they travel whole, and stages that do not fit together are refused."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from msgspec.structs import replace

from secateur.engine.kernels import Fragment
from secateur.engine.processors import RowLimit, SortKey, desc
from secateur.engine.sql import ExchangeKind, FetchedRows, PinnedScan, QueryStage, ScanPlan, SelectPlan, Strategy
from secateur.errors import InternalError, ProtocolError
from secateur.partitioning.pruning import All, PartitionTree
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode, pack, unpack

SCHEME = build_scheme(
    hashes=[HashComponent(("k",), 4)], types={"k": parse_type("BIGINT")}, primary_key=("k",), table="t"
)


def scan(relation: str, *, replicated: bool = False) -> ScanPlan:
    return ScanPlan(
        relation, 1, "t", "t", ("k",), PartitionTree("t", SCHEME, All(), 4, 100), SCHEME.affinity_group(), replicated
    )


def over(*relations: str) -> Fragment:
    return Fragment(f"SELECT k FROM {', '.join(relations)}", relations, (("k", "BIGINT"),))


def plan(*stages: QueryStage) -> SelectPlan:
    scans = (scan("s0"), scan("s1"), scan("s2", replicated=True))
    return SelectPlan(
        "id", scans, over("s0"), stages, Strategy.GATHER, None, (("k", "BIGINT"),), 0, (), None, True, 1
    ).named()


FINAL = QueryStage("final", over("x0"), inputs=(0,), at_coordinator=True)
READ = QueryStage("read", over("s0"), scans=(0,))
JOIN = QueryStage("join", over("x0", "s1"), scans=(1,), inputs=(0,))
LAST = QueryStage("final", over("x1"), inputs=(1,), at_coordinator=True)


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param([READ, FINAL], id="two stages"),
        pytest.param(
            [
                QueryStage("small", over("s2"), scans=(2,), at_coordinator=True, exchange=ExchangeKind.BROADCAST),
                JOIN,
                LAST,
            ],
            id="broadcast",
        ),
        pytest.param(
            [
                QueryStage("read", over("s0"), scans=(0,), exchange=ExchangeKind.ROUTE, columns=("k",), route=1),
                JOIN,
                LAST,
            ],
            id="route",
        ),
        pytest.param(
            [
                QueryStage("read", over("s0"), scans=(0,), exchange=ExchangeKind.SHUFFLE, columns=("k",)),
                QueryStage("group", over("x0"), inputs=(0,)),
                LAST,
            ],
            id="shuffle",
        ),
        pytest.param(
            [replace(READ, order=(desc("k"),)), replace(FINAL, fragment=replace(over("x0"), is_pipelineable=True))],
            id="in order",
        ),
        pytest.param(
            [READ, replace(FINAL, fragment=replace(over("x0"), is_pipelineable=True), limit=RowLimit(2, None))],
            id="some rows",
        ),
        pytest.param(
            [
                READ,
                QueryStage("also", over("x0"), inputs=(0,), at_coordinator=True),
                QueryStage("f", over("x0", "x1"), inputs=(0, 1), at_coordinator=True),
            ],
            id="shared",
        ),
    ],
)
def test_a_plan_travels(stages: Sequence[QueryStage]) -> None:
    made = plan(*stages)
    assert SelectPlan.decoded(made.plan_id, made.encoded()) == made


def test_the_rows_of_system_tables_do_not_travel_with_a_plan() -> None:
    made = plan(READ, FINAL)
    made = replace(made, scans=(*made.scans[:2], replace(made.scans[2], system="members")))
    pinned = made.pinned({made.scans[2].relation: FetchedRows(pa.table({"k": [1]}))})
    assert [isinstance(found, PinnedScan) for found in pinned.scans] == [False, False, True]
    assert decode(encode(pinned), SelectPlan) == made


def test_bytes_that_are_not_a_plan_are_a_protocol_error() -> None:
    made = plan(READ, FINAL)
    with pytest.raises(ProtocolError, match="is not that plan"):
        SelectPlan.decoded(made.plan_id, made.encoded()[:-1])
    fields = unpack(made.encoded())
    with pytest.raises(ProtocolError, match=r"SelectPlan cannot be read: Invalid enum value 'magic'"):
        decode(pack({**fields, "strategy": "magic"}), SelectPlan)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        pytest.param([], "the last stage", id="no stage"),
        pytest.param([READ], "the last stage of a plan runs at the coordinator", id="end"),
        pytest.param(
            [READ, QueryStage("f", over("x0"), inputs=(0, 1), at_coordinator=True)], "not an earlier stage", id="order"
        ),
        pytest.param(
            [READ, QueryStage("f", over("x0", "s1"), inputs=(0,), at_coordinator=True)],
            r"reads \['s1'\], which neither",
            id="not filled",
        ),
        pytest.param(
            [READ, QueryStage("f", over("x0"), scans=(1,), inputs=(0,), at_coordinator=True)],
            "a partitioned table at the",
            id="scan at the coordinator",
        ),
        pytest.param(
            [QueryStage("r", over("s2"), scans=(2,)), FINAL],
            r"stage 0 \(r\) would give the same rows at every member",
            id="same rows",
        ),
        pytest.param(
            [READ, QueryStage("f", over("s2"), scans=(2,), at_coordinator=True)], "has no consumer", id="no consumer"
        ),
        pytest.param([READ, JOIN, LAST], "is gathered, but join does not", id="gather"),
        pytest.param([READ, replace(FINAL, limit=RowLimit(0, 3))], "leaves out rows, but", id="limit of a whole"),
        pytest.param([replace(READ, limit=RowLimit(0, 3)), FINAL], "leaves out rows, but", id="limit in the middle"),
        pytest.param(
            [QueryStage("r", over("s0"), scans=(0,), order=(SortKey("x"),)), FINAL],
            r"comes in order of \['x'\], not columns",
            id="order by nothing",
        ),
        pytest.param(
            [replace(READ, order=(SortKey("k"),)), FINAL], "is not passed on row by row", id="order that is lost"
        ),
        pytest.param(
            [QueryStage("r", over("s0"), scans=(0,), exchange=ExchangeKind.SHUFFLE), FINAL],
            "is shuffled by",
            id="no key",
        ),
        pytest.param(
            [QueryStage("r", over("s0"), scans=(0,), exchange=ExchangeKind.SHUFFLE, columns=("x",)), FINAL],
            "is shuffled by",
            id="unknown key",
        ),
        pytest.param(
            [
                QueryStage(
                    "r",
                    replace(over("s0"), columns=(("k", "BIGINT[]"),)),
                    scans=(0,),
                    exchange=ExchangeKind.SHUFFLE,
                    columns=("k",),
                ),
                FINAL,
            ],
            "shuffled by k of type list<.*>, which cannot be a key",
            id="key of lists",
        ),
        pytest.param(
            [QueryStage("r", over("s0"), scans=(0,), exchange=ExchangeKind.ROUTE, columns=("k",)), JOIN, LAST],
            "follows the partitions",
            id="no route",
        ),
        pytest.param(
            [QueryStage("r", over("s0"), scans=(0,), exchange=ExchangeKind.ROUTE, columns=("k",), route=0), JOIN, LAST],
            "does not have",
            id="route elsewhere",
        ),
        pytest.param(
            [QueryStage("r", over("s0"), scans=(0,), exchange=ExchangeKind.ROUTE, route=1), JOIN, LAST],
            "do not stand for",
            id="route without key",
        ),
        pytest.param(
            [
                QueryStage(
                    "r",
                    replace(over("s0"), columns=(("k", "INTEGER"),)),
                    scans=(0,),
                    exchange=ExchangeKind.ROUTE,
                    columns=("k",),
                    route=1,
                ),
                JOIN,
                LAST,
            ],
            "of the types int64",
            id="route by another type",
        ),
    ],
)
def test_stages_that_do_not_fit_together(stages: Sequence[QueryStage], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        plan(*stages)
