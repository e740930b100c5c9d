"""Changes whose answer was lost: an id makes them once at a primary, and nobody else is asked for them then."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from secateur.client import Connection
from secateur.errors import (
    LimitExceededError,
    MemberLostError,
    OperationalError,
    TopologyChangedError,
    UnreachableError,
)
from secateur.protocol import ChangeKind, ChangeStatement, CoordinatedChange, DuplicateMatchPolicy


def planned(cluster: Any, query: str, kind: str) -> None:
    """Have the statement ``change`` concern the rows of a query, and have its parameter."""
    select = replace(cluster.statements[query].select("change", cluster.catalog_version), parameter_count=1)
    table = cluster.tables[0]
    change = (
        ChangeStatement(table, ChangeKind.DELETE, select)
        if kind == "change"
        else CoordinatedChange(table, select, DuplicateMatchPolicy.REFUSED, is_single_partition=True)
    )
    cluster.statements["change"] = type(cluster.statements[query])(reply=lambda _: (change, b""))


def owner(cluster: Any) -> str:
    return str(cluster.ownership.primary(cluster.tables[0].scheme.partition_of({"customer_id": "C2"})))


@pytest.mark.parametrize("kind", ["change", "cross_partition_change"])
@pytest.mark.parametrize(
    "then",
    [TopologyChangedError("moved; nothing was changed"), LimitExceededError("too many requests", retry_safe=True)],
    ids=["which is tried again", "which is not"],
)
def test_a_change_that_may_have_been_made_is_not_called_undone(
    cluster: Any, conn: Connection, kind: str, then: OperationalError
) -> None:
    conn._session.retry_s = 0.1
    planned(cluster, "one", kind)
    cluster.failures[owner(cluster), "change_one_partition"] = [
        MemberLostError("the connection broke", member=owner(cluster)),
        *(then for _ in range(100)),
    ]
    with pytest.raises(MemberLostError, match="the connection broke"):
        conn.execute("change", ["C2"])


@pytest.mark.parametrize("kind", ["change", "cross_partition_change"])
def test_a_change_that_may_have_been_made_is_not_published_as_well(cluster: Any, conn: Connection, kind: str) -> None:
    """Meanwhile the change has come to concern several partitions: that is published under another id."""
    planned(cluster, "one", kind)
    assert conn._session.prepare("change", ["C2"])[1] is False
    planned(cluster, "all", kind)
    cluster.failures[owner(cluster), "change_one_partition"] = [
        MemberLostError("the connection broke", member=owner(cluster))
    ]
    with pytest.raises(OperationalError, match=r"not known whether Orders was changed.*the connection broke"):
        conn.execute("change", ["C2"])
    assert [asked for asked in cluster.log if asked[0] == "controller" and asked[1].startswith("change")] == []


@pytest.mark.parametrize("kind", ["change", "cross_partition_change"])
def test_a_change_that_was_made_asks_nobody_for_its_figures(cluster: Any, conn: Connection, kind: str) -> None:
    """Its answer tells of a newer topology, which nobody can give: to say so would be to say that nothing was done."""
    planned(cluster, "all", kind)
    silent = UnreachableError("nobody is there")
    cluster.failures["controller", "get_topology"] = [silent] * 100
    cluster.failures.update({(member, "get_owners"): [silent] * 100 for member in cluster.topology.member_ids})
    cursor = conn.execute("change", ["C2"])
    assert cursor.rowcount == 7
    assert cursor.stats is not None
    assert (cursor.stats.members_touched, cursor.stats.members_total) == (2, 3)
