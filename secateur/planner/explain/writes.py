"""EXPLAIN of statements that write: whose partitions, who keeps the backups, and how the change becomes visible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.errors import NoRangeError
from secateur.partitioning.schemes.components import ROW_ID
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.topology.topology import Topology
from secateur.planner.explain.scan_facts import json_values
from secateur.planner.explain.serving import serving_insert

_KEYS_SHOWN_MAX: Final = 100


def copy_holders(table: TableDef, partitions: Iterable[int], topology: Topology) -> tuple[list[str], list[str]]:
    """Return the owners of some partitions and the members that keep backups of them.

    Every member owns a replicated table.
    """
    if table.replicated:
        return list(topology.member_ids), []
    ownership = topology.ownership(table.scheme.affinity_group())
    holders = [ownership.holders(partition) for partition in partitions]
    owners = {primary for primary, *_ in holders}
    backups = {member for _, *others in holders for member in others}
    return [member for member in topology.member_ids if member in owners], [
        member for member in topology.member_ids if member in backups
    ]


def publication(table: TableDef, partitions: int | None) -> str:
    """Describe how a change of so many partitions becomes visible; None for a number that depends on parameters."""
    if partitions is None:
        return (
            "written: to one partition by its primary and its backups, to several as a load that is staged "
            "on all copies and published at once by the controller"
        )
    if partitions == 1 and not table.replicated:
        return "written: by the primary, then by its backups"
    return "written: staged on all copies, then published at once by the controller"


def insert_pruning(table: TableDef, rows: pa.Table, topology: Topology, *, enabled: bool) -> dict[str, Any]:
    """The member ``pruning`` of the document for the rows of an INSERT, which say themselves where they go.

    Raises:
        NoRangeError: A row that no range covers, nor is a range made for it.
    """
    partitions = _partitions(rows, table)
    owners, backups = (
        copy_holders(table, partitions, topology) if partitions is not None else (list(topology.member_ids), [])
    )
    execution = "none" if not rows.num_rows else "local" if len(owners) == 1 else "distributed"
    reason = (
        None
        if partitions is not None
        else "its rows are spread at random when it runs"
        if ROW_ID in table.scheme.columns
        else "the INSERT creates ranges for some of its rows: run it to learn their partitions"
    )
    key = [name for name in table.scheme.columns if name != ROW_ID]
    scan = {
        "table": table.name,
        "alias": table.name,
        "partitions": partitions,
        "partitions_total": table.scheme.live_partition_count,
        "partitioning_key": key,
        "partitioning_key_values": _key_values(rows, key),
        "primary_key_bounds": {"lower": None, "upper": None},
        "columns": rows.column_names,
        "filter": None,
        "estimated_rows": rows.num_rows,
        "reason": reason,
    }
    return {
        "enabled": enabled,
        "applicable": not table.replicated and partitions is not None,
        "reason": reason,
        "tree": f"{table.name}: {_tree(table, partitions)}",
        "execution": execution,
        "topology_version": topology.version,
        "required_members": owners,
        "backup_members": backups,
        "members_total": len(topology.members),
        "scans": [scan],
        **serving_insert(table, rows),
    }


def _partitions(rows: pa.Table, table: TableDef) -> list[int] | None:
    """The partitions of some rows; None for rows at random, and when ranges have to be made for them first."""
    if ROW_ID in table.scheme.columns:
        return None
    try:
        return [0] if table.replicated else list(split(rows, table))
    except NoRangeError:
        if table.scheme.makes_ranges:
            return None
        raise


def _tree(table: TableDef, partitions: Sequence[int] | None) -> str:
    if table.replicated:
        return "any"
    return (
        "all"
        if partitions is None
        else f"({' | '.join(f'p{partition}' for partition in partitions)})"
        if partitions
        else "none"
    )


def write_dag(what: str, members: Sequence[str]) -> dict[str, Any]:
    """Return the ``dag`` of the document: every owner changes its own rows, and no rows are exchanged."""
    return {
        "vertices": [{"name": what, "members": list(members), "local_parallelism": 1}] if members else [],
        "edges": [],
    }


def _key_values(rows: pa.Table, key: Sequence[str]) -> list[list[Any]] | None:
    if not key or rows.num_rows > _KEYS_SHOWN_MAX:
        return None
    try:
        found = {tuple(row[name] for name in key) for row in rows.select(list(key)).to_pylist()}
    except (OverflowError, ValueError):  # a day or an instant outside the years of Python
        return None
    return [json_values(row) for row in sorted(found)]
