"""Makes the rows of the system tables (:mod:`secateur.planner.system.tables`) for a statement that is about to run.

Each is a snapshot; two of them in one statement are two moments close together. The controller asks members for data
that only they have. A member that does not answer soon is left out, and the controller's watch will determine whether
it is lost.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import pyarrow as pa
from msgspec.structs import asdict

from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.history import History, LoadHistory
from secateur.cluster.controller.jobs import ControllerJobs
from secateur.cluster.controller.member_list import MemberList, PartitionHits, TableParts, stored_parts
from secateur.cluster.controller.running_requests import RunningRequest
from secateur.cluster.controller.statement_rows import reason_of, statement_summary_rows, statement_table
from secateur.cluster.settings import ClusterSettings, setting_rows
from secateur.errors import ProtocolError
from secateur.partitioning.tables.table import TableDef
from secateur.planner.ddl.table_sql import partition_by_sql, range_sql, table_sql
from secateur.planner.explain.statement_facts import StatementFacts
from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.protocol.changes import GetStagedLoads
from secateur.protocol.membership import GetHotKeys, GetMemberStats, HotKeys
from secateur.protocol.message import Acknowledged
from secateur.protocol.query import (
    DescribeStatement,
    GetStatements,
    ReadSystemTable,
    StatementDescription,
)
from secateur.protocol.summaries import GetTenantHours, TenantHour, TenantHours
from secateur.wire import Reply, Request, encode_table

Row = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row] | pa.Table

_NEWEST: Final = GetStatements(ended_of_plan_max=20)
_RUNNING: Final = GetStatements(ended_of_plan_max=0)
_NO_PARTS: Final = TableParts({}, {}, 0)


class SystemTables:
    """Answers ``read_system_table``. Lives on the controller's event loop.

    Args:
        facts_of: The statement of a plan by the plan's id, as long as it is known.

    Attributes:
        history: The last fifteen minutes.
    """

    def __init__(
        self,
        state: ClusterState,
        members: MemberList,
        jobs: ControllerJobs,
        facts_of: Callable[[str], StatementFacts | None],
        requests: Callable[[], Sequence[RunningRequest]],
        loads: LoadHistory,
        settings: ClusterSettings,
    ) -> None:
        self._state = state
        self._members = members
        self._jobs = jobs
        self._facts_of = facts_of
        self._requests = requests
        self._loads = loads
        self._settings = settings
        self.history = History(members.ask_all)
        self._rows: dict[str, Callable[[], Rows | Awaitable[Rows]]] = {
            "members": self._member_rows,
            "tables": self._tables,
            "columns": self._columns,
            "indexes": self._indexes,
            "types": self._types,
            "checks": self._checks,
            "partitions": self._partitions,
            "tokens": self._tokens,
            "roles": lambda: [{"name": role.name} for role in self._state.access.roles],
            "grants": self._grants,
            "policies": self._policies,
            "jobs": self._job_rows,
            "events": self._events,
            "loads": self._load_rows,
            "settings": lambda: list(setting_rows(self._settings, self._state.pruning)),
            "statements": lambda: self._statements("statements", GetStatements()),
            "newest_statements": lambda: self._statements("newest_statements", _NEWEST),
            "running_statements": lambda: self._statements("running_statements", _RUNNING),
            "statement_summaries": self._statement_summaries,
            "latencies": self._latencies,
            "history": lambda: [dataclasses.asdict(line) for line in self.history.lines()],
            "hot_keys": self._hot_keys,
            "tenants": self._tenant_rows,
            "resource_groups": lambda: [asdict(group) for group in self._state.access.groups],
        }

    async def answer(self, request: Request[ReadSystemTable]) -> Reply[Acknowledged]:
        """The rows of one system table, as an Arrow table."""
        name = request.message.table
        made = self._rows.get(name)
        if made is None:
            raise ProtocolError(f"there is no system table {name!r}; there is {', '.join(self._rows)}")
        found = made()
        rows = await found if isinstance(found, Awaitable) else found
        if not isinstance(rows, pa.Table):
            rows = pa.Table.from_pylist(list(rows), schema=_schema(SYSTEM_TABLES[name]))
        return Reply(Acknowledged(), encode_table(rows))

    def describe(self, request: Request[DescribeStatement]) -> Reply[StatementDescription]:
        """The row of ``secateur.statements`` about one statement, for the member that logs it."""
        entry = request.message.entry
        facts = self._facts_of(entry.plan_id)
        return Reply(
            StatementDescription(
                None if facts is None else facts.statement,
                None if facts is None else facts.fingerprint,
                reason_of(entry, facts),
                len(self._state.topology.members),
            )
        )

    async def _member_rows(self) -> list[Row]:
        return [asdict(row) for row in await self._members.rows()]

    async def _tables(self) -> list[Row]:
        stored = stored_parts(await self._members.ask_all(GetMemberStats()))
        rows: list[Row] = []
        for table in self._state.catalog.tables():
            data = stored.get(table.table_id, _NO_PARTS)
            rows.append(
                {
                    "table_name": table.name,
                    "table_type": "BASE TABLE",
                    "table_id": table.table_id,
                    "version": table.version,
                    "primary_key": list(table.declared_key),
                    "partitioning": partition_by_sql(table.scheme) or None,
                    "partitions": table.scheme.live_partition_count,
                    "backups": None if table.replicated else table.backups,
                    "replicated": table.replicated,
                    "rows": sum(data.rows.values()),
                    "bytes": data.bytes,
                    "sql": table_sql(table),
                    "comment": table.comment,
                }
            )
        rows.extend(
            {
                "table_name": external.name,
                "table_type": "EXTERNAL",
                "table_id": external.table.table_id,
                "partitioning": external.title,
                "sql": external.sql,
            }
            for external in self._state.catalog.external_tables.values()
        )
        views = self._state.catalog.views.values()
        rows.extend(
            {"table_name": view.name, "table_type": "VIEW", "table_id": view.view_id, "sql": view.sql} for view in views
        )
        return sorted(rows, key=lambda row: str(row["table_name"]))

    def _indexes(self) -> list[Row]:
        return [
            {"index_name": index.name, "table_name": table.name, "columns": list(index.columns)}
            for table in self._state.catalog.tables()
            for index in table.indexes
        ]

    def _checks(self) -> list[Row]:
        return [
            {
                "table_name": table.name,
                "check_name": check.name,
                "condition": check.condition,
                "columns": list(check.columns),
            }
            for table in self._state.catalog.tables()
            for check in table.checks
        ]

    def _columns(self) -> list[Row]:
        rows: list[Row] = []
        external = [external.table for external in self._state.catalog.external_tables.values()]
        for table in (*self._state.catalog.tables(), *external):
            key, partitioning = table.declared_key, table.scheme.columns
            for position, column in enumerate(table.visible_columns, 1):
                name = column.name
                rows.append(
                    {
                        "table_name": table.name,
                        "position": position,
                        "column_name": name,
                        "data_type": str(column.type),
                        "is_nullable": column.nullable,
                        "key_position": key.index(name) + 1 if name in key else None,
                        "partitioning_position": partitioning.index(name) + 1 if name in partitioning else None,
                        "column_default": column.default,
                        "comment": column.comment,
                    }
                )
        for view in self._state.catalog.views.values():
            for position, (name, kind) in enumerate(view.columns, 1):
                rows.append(
                    {
                        "table_name": view.name,
                        "position": position,
                        "column_name": name,
                        "data_type": kind,
                        "is_nullable": True,
                    }
                )
        return sorted(rows, key=lambda row: (row["table_name"], row["position"]))

    def _types(self) -> list[Row]:
        types = self._state.catalog.types.values()
        return [{"type_name": named.name, "data_type": str(named.type), "sql": named.sql} for named in types]

    async def _partitions(self) -> list[Row]:
        answers = await self._members.ask_all(GetMemberStats(with_hits=True))
        stored, hits = stored_parts(answers), PartitionHits(answers)
        topology = self._state.topology
        living = frozenset(topology.member_ids)
        rows: list[Row] = []
        for table in self._state.catalog.tables():
            table_id, data = table.table_id, stored.get(table.table_id, _NO_PARTS)
            if table.replicated:
                row = {
                    "table_name": table.name,
                    "partition": 0,
                    "backup_members": list(topology.member_ids),
                    "copies_missing": 0,
                }
                sizes = {"rows": data.rows.get(0, 0), "bytes": data.partition_bytes.get(0, 0)}
                rows.append({**row, **sizes, **hits.of_replicated(table_id)._asdict()})
                continue
            ownership = topology.ownership(table.scheme.affinity_group())
            ranges = _ranges(table)
            for partition in table.scheme.live_ids():
                holders = [member for member in ownership.holders(partition) if member in living]
                primary = holders[0] if holders else None
                rows.append(
                    {
                        "table_name": table.name,
                        "partition": partition,
                        "range": ranges.get(partition),
                        "primary_member": primary,
                        "backup_members": holders[1:],
                        "copies_missing": max(0, 1 + table.backups - len(holders)),
                        "rows": data.rows.get(partition, 0),
                        "bytes": data.partition_bytes.get(partition, 0),
                        **hits.of(table_id, partition, primary)._asdict(),
                    }
                )
        return rows

    def _tokens(self) -> list[Row]:
        return [
            {
                "id": token.id,
                "name": token.name or None,
                "principal": token.principal or None,
                "role": token.role.title,
                "roles": list(token.roles),
                "claims": list(token.claims.items()),
                "created": _moment(token.created or None),
                "expires": _moment(token.expires),
                "revoked": _moment(token.revoked),
            }
            for token in self._state.access.listed_tokens
        ]

    def _grants(self) -> list[Row]:
        access = self._state.access
        held = [(role.name, "", role.grants) for role in access.roles]
        held += [("", token.id, token.tables) for token in access.tokens if not token.is_over]
        return [
            {"role": role, "token": token, "table_name": grant.table, "privilege": grant.privilege.value}
            for role, token, grants in held
            for grant in grants
        ]

    def _policies(self) -> list[Row]:
        access = self._state.access
        return [
            {
                "table_name": table.name,
                "policy_name": policy.name,
                "command": policy.command.value,
                "roles": list(policy.roles),
                "using": None if policy.using is None else policy.using.text,
                "check": None if policy.check is None else policy.check.text,
                "enabled": table.origin in access.secured,
            }
            for table in self._state.catalog.tables()
            for policy in access.policies_of(table.origin)
        ]

    def _events(self) -> list[Row]:
        return [
            {"number": number, "time": event.time, "kind": event.kind, "member": event.member, "detail": event.detail}
            for number, event in enumerate(self._state.events.latest())
        ]

    def _job_rows(self) -> list[Row]:
        return [
            {**asdict(job), "id": job.job_id, "submitted": _moment(job.submitted_s), "ended": _moment(job.ended_s)}
            for job in self._jobs.rows()
        ]

    async def _load_rows(self) -> list[Row]:
        names = {table.table_id: table.name for table in self._state.catalog.tables()}
        told = [answer for _, answer in await self._members.ask_all(GetStagedLoads())]
        return [
            {
                "id": load.load_id,
                "table_name": names[load.table_id],
                "state": load.state.value,
                "rows": load.rows,
                "partitions": load.partitions,
                "started": _moment(load.started_s),
                "stream": None if load.stream is None else load.stream.stream,
                "batch": None if load.stream is None else load.stream.batch,
                "elapsed_ms": 1000 * load.elapsed_s,
            }
            for load in self._loads.statuses(told)
            if load.table_id in names
        ]

    async def _statements(self, name: str, asked: GetStatements) -> pa.Table:
        return statement_table(
            await self._members.ask_all(asked),
            self._requests(),
            self._facts_of,
            len(self._state.topology.members),
            time.time(),
            _schema(SYSTEM_TABLES[name]),
        )

    async def _statement_summaries(self) -> list[Row]:
        answers = await self._members.ask_all(GetStatements(summaries_only=True))
        return statement_summary_rows(answers, self._facts_of, len(self._state.topology.members))

    async def _latencies(self) -> list[Row]:
        return [
            {
                **asdict(total),
                "member": member_id,
                "p50_ms": total.latencies.percentile_ms(0.5),
                "p99_ms": total.latencies.percentile_ms(0.99),
                "bucket_ms": [up_to_ms for up_to_ms, _ in total.latencies.buckets],
                "bucket_statements": [count for _, count in total.latencies.buckets],
            }
            for member_id, answer in await self._members.ask_all(GetStatements(totals_only=True))
            for total in answer.totals
        ]

    async def _hot_keys(self) -> list[Row]:
        names = {table.table_id: table.name for table in self._state.catalog.tables()}
        return list(list_hot_keys(await self._members.ask_all(GetHotKeys()), names))

    async def _tenant_rows(self) -> list[Row]:
        return list(tenant_rows(answer for _, answer in await self._members.ask_all(GetTenantHours())))


def tenant_rows(answers: Iterable[TenantHours]) -> Iterable[Row]:
    """What each tenant has used of all members, by the hour, the newest last."""
    lines: dict[tuple[int, str], TenantHour] = {}
    for answer in answers:
        for line in answer.lines:
            known = lines.setdefault((line.hour, line.tenant), line)
            if known is not line:
                known.add(line)
    for (hour, _), line in sorted(lines.items()):
        timed = bool(line.latencies.total)
        yield {
            **asdict(line),
            "hour": _moment(hour),
            "p50_ms": line.latencies.percentile_ms(0.5) if timed else None,
            "p99_ms": line.latencies.percentile_ms(0.99) if timed else None,
        }


def _schema(table: TableDef) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in table.arrow_schema])


def _ranges(table: TableDef) -> dict[int, str]:
    """The range of each partition as it is written; nothing for a table without ranges."""
    component = table.scheme.range
    if component is None:
        return {}
    written = [
        (part.ordinal, range_sql(part, is_catch_all=part is component.catch_all)) for part in component.partitions
    ]
    return {partition: text for ordinal, text in written for partition in table.scheme.block(ordinal)}


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def list_hot_keys(answers: Sequence[tuple[str, HotKeys]], names: Mapping[int, str]) -> Iterable[dict[str, Any]]:
    """List the hottest keys of each table, by member.

    Members sample alike, so what they have sampled together stands for the look-ups of the cluster.

    Args:
        answers: The ids of members, and what they have told.
        names: The tables that there are, by id.
    """
    totals: dict[int, int] = {}
    for _, answer in answers:
        for table in answer.tables:
            totals[table.table_id] = totals.get(table.table_id, 0) + table.sampled
    for member, answer in answers:
        for table in answer.tables:
            name, total = names.get(table.table_id), totals[table.table_id]
            if name is None or not total:
                continue
            for key in table.keys:
                yield {
                    "table_name": name,
                    "key": key.key,
                    "member": member,
                    "partition": key.partition,
                    "share": key.count / total,
                    "share_error": key.error / total,
                    "sampled": key.count,
                }
