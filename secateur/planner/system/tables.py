"""The system tables and their columns.

Their rows are made when a statement that reads them runs, so no plan contains any.

The planner treats them as replicated tables; a statement that reads one runs on its coordinator, over rows that the
controller has collected once for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_type_hints

import msgspec

from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.column_type import parse_type
from secateur.protocol.access import ResourceGroup
from secateur.protocol.membership import MemberInfo
from secateur.protocol.summaries import LatencyHistogram, TenantHour

SCHEMA: Final = "secateur"
"""The schema of the system tables; also the catalog's name in ``information_schema``."""

_TEXT, _NUMBER, _FLAG, _TEXTS, _MOMENT = "VARCHAR", "BIGINT", "BOOLEAN", "VARCHAR[]", "TIMESTAMP"
_KINDS: Final[Mapping[object, str]] = {
    str: _TEXT,
    int: _NUMBER,
    int | None: _NUMBER,
    float: "DOUBLE",
    float | None: "DOUBLE",
    bool: _FLAG,
    tuple[str, ...]: _TEXTS,
}
"""The types of columns by those of fields."""


def _table(name: str, key: Mapping[str, str], /, **others: str) -> TableDef:
    kinds = {**key, **others, **key}  # those of the key come first, as it says
    columns = tuple(Column(column, parse_type(kind), column not in key) for column, kind in kinds.items())
    return TableDef(name, 0, columns, tuple(key), PartitionScheme(), replicated=True)


def _columns_of(row: type[msgspec.Struct], last: tuple[str, ...] = ()) -> dict[str, str]:
    """The columns of a table whose rows are these values: their fields in order, but for the last ones."""
    hints = get_type_hints(row)
    names = sorted(row.__struct_fields__, key=lambda name: name in last)
    return {name: _KINDS[hints[name]] for name in names if hints[name] is not LatencyHistogram}


_STATEMENT_KEY: Final = {"member": _TEXT, "number": _NUMBER}
_RUNNING_STATEMENT: Final = {
    "id": _TEXT,
    "statement": _TEXT,
    "system": _FLAG,
    "plan_id": _TEXT,
    "state": _TEXT,
    "started": _MOMENT,
    "elapsed_ms": "DOUBLE",
}
_ENDED_STATEMENT: Final = {
    "execution": _TEXT,
    "members": _TEXTS,
    "members_touched": _NUMBER,
    "partitions_read": _NUMBER,
    "rows": _NUMBER,
    "error": _TEXT,
    "partitions_total": _NUMBER,
    "members_total": _NUMBER,
    "topology_version": _NUMBER,
    "pruning": _FLAG,
    "pruned": _FLAG,
    "fingerprint": _TEXT,
    "tree": _TEXT,
    "prunable": _FLAG,
    "reason": _TEXT,
}

_TABLES: Final = (
    _table("members", {"id": _TEXT}, **_columns_of(MemberInfo, last=("draining", "serving"))),
    _table("types", {"type_name": _TEXT}, data_type=_TEXT, sql=_TEXT),
    _table(
        "tables",
        {"table_name": _TEXT},
        table_type=_TEXT,
        table_id=_NUMBER,
        version=_NUMBER,
        primary_key=_TEXTS,
        partitioning=_TEXT,
        partitions=_NUMBER,
        backups=_NUMBER,
        replicated=_FLAG,
        rows=_NUMBER,
        bytes=_NUMBER,
        sql=_TEXT,
        comment=_TEXT,
    ),
    _table(
        "columns",
        {"table_name": _TEXT, "position": "INTEGER"},
        column_name=_TEXT,
        data_type=_TEXT,
        is_nullable=_FLAG,
        key_position="INTEGER",
        partitioning_position="INTEGER",
        column_default=_TEXT,
        comment=_TEXT,
    ),
    _table("checks", {"table_name": _TEXT, "check_name": _TEXT}, condition=_TEXT, columns=_TEXTS),
    _table("indexes", {"index_name": _TEXT}, table_name=_TEXT, columns=_TEXTS),
    _table(
        "partitions",
        {"table_name": _TEXT, "partition": _NUMBER},
        range=_TEXT,
        primary_member=_TEXT,
        backup_members=_TEXTS,
        copies_missing=_NUMBER,
        rows=_NUMBER,
        bytes=_NUMBER,
        reads=_NUMBER,
        writes=_NUMBER,
    ),
    _table(
        "latencies",
        {"member": _TEXT, "execution": _TEXT},
        statements=_NUMBER,
        elapsed_ms="DOUBLE",
        p50_ms="DOUBLE",
        p99_ms="DOUBLE",
        bucket_ms="DOUBLE[]",
        bucket_statements="BIGINT[]",
        members_touched=_NUMBER,
        pruned=_NUMBER,
        unpruned=_NUMBER,
    ),
    _table(
        "history",
        {"time": _MOMENT, "process": _TEXT},
        seconds="DOUBLE",
        statements=_NUMBER,
        failed=_NUMBER,
        p50_ms="DOUBLE",
        p95_ms="DOUBLE",
        p99_ms="DOUBLE",
        max_ms="DOUBLE",
        queries=_NUMBER,
        members_touched=_NUMBER,
        pruned=_NUMBER,
        unpruned=_NUMBER,
        cpu_percent="DOUBLE",
        resident_bytes=_NUMBER,
        memory_used=_NUMBER,
    ),
    _table(
        "hot_keys",
        {"table_name": _TEXT, "key": _TEXT, "member": _TEXT},
        partition=_NUMBER,
        share="DOUBLE",
        share_error="DOUBLE",
        sampled=_NUMBER,
    ),
    _table("resource_groups", {"name": _TEXT}, **_columns_of(ResourceGroup)),
    _table("tenants", {"tenant": _TEXT, "hour": _MOMENT}, **_columns_of(TenantHour), p50_ms="DOUBLE", p99_ms="DOUBLE"),
    _table(
        "tokens",
        {"id": _TEXT},
        name=_TEXT,
        principal=_TEXT,
        role=_TEXT,
        roles=_TEXTS,
        claims="MAP(VARCHAR, VARCHAR)",
        created=_MOMENT,
        expires=_MOMENT,
        revoked=_MOMENT,
    ),
    _table("roles", {"name": _TEXT}),
    # A grant is one of a role or one of a token: the other is empty, so that the four together are a key.
    _table("grants", {"role": _TEXT, "table_name": _TEXT, "privilege": _TEXT, "token": _TEXT}),
    _table(
        "policies",
        {"table_name": _TEXT, "policy_name": _TEXT},
        command=_TEXT,
        roles=_TEXTS,
        using=_TEXT,
        check=_TEXT,
        enabled=_FLAG,
    ),
    _table("settings", {"name": _TEXT}, value=_TEXT, default=_TEXT, description=_TEXT),
    _table(
        "jobs",
        {"id": _TEXT},
        name=_TEXT,
        status=_TEXT,
        attempt=_NUMBER,
        coordinator=_TEXT,
        submitted=_MOMENT,
        ended=_MOMENT,
        reason=_TEXT,
    ),
    _table(
        "loads",
        {"id": _TEXT},
        table_name=_TEXT,
        state=_TEXT,
        rows=_NUMBER,
        partitions=_NUMBER,
        started=_MOMENT,
        stream=_TEXT,
        batch=_NUMBER,
        elapsed_ms="DOUBLE",
    ),
    _table(
        "events",
        {"number": _NUMBER},
        time=_MOMENT,
        kind=_TEXT,
        member=_TEXT,
        detail=_TEXT,
    ),
    _table(
        "statements",
        _STATEMENT_KEY,
        **_RUNNING_STATEMENT,
        **_ENDED_STATEMENT,
        executions=_NUMBER,
        mean_ms="DOUBLE",
        p50_ms="DOUBLE",
        p99_ms="DOUBLE",
        max_ms="DOUBLE",
    ),
    _table("newest_statements", _STATEMENT_KEY, **_RUNNING_STATEMENT, **_ENDED_STATEMENT, ended=_FLAG),
    _table("running_statements", _STATEMENT_KEY, **_RUNNING_STATEMENT, rows=_NUMBER, fingerprint=_TEXT),
    _table(
        "statement_summaries",
        {"fingerprint": _TEXT},
        statement=_TEXT,
        system=_FLAG,
        tree=_TEXT,
        prunable=_FLAG,
        reason=_TEXT,
        executions=_NUMBER,
        total_ms="DOUBLE",
        running=_NUMBER,
        listed=_NUMBER,
        failed=_NUMBER,
        mean_ms="DOUBLE",
        p50_ms="DOUBLE",
        p99_ms="DOUBLE",
        max_ms="DOUBLE",
        partitions_read="DOUBLE",
        partitions_total=_NUMBER,
        members_touched="DOUBLE",
        members_total=_NUMBER,
        rows="DOUBLE",
        pruned=_NUMBER,
        unpruned=_NUMBER,
    ),
)

SYSTEM_TABLES: Final[Mapping[str, TableDef]] = {table.name: table for table in _TABLES}
"""The system tables by name, in lower case."""
