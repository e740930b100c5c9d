"""Who may do what: roles and their grants, row policies, and the rights that follow from them for one principal.

The controller keeps an :class:`AccessRecord` and takes each change of it to every process of the cluster; a command
that changes it is acknowledged when all of them act on it. Each process works out by itself what the bearer of a token
may do (:meth:`Rights.of`): the planner adds the conditions of policies to the scans of a statement, and members check
them again, whatever plan or rows they are handed.

A grant is on a name: of a table, a view, an external table, or a system table such as ``secateur.tables``. To read a
view, its reader needs the view and everything beneath it. A policy is on a table, whatever its name is.

Source: GRANT, CREATE POLICY and their combination as PostgreSQL defines them: permissive policies of a command are
joined by OR, a table with row security and without a policy shows nothing, and what changes a row has to see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from secateur.errors import AuthenticationError, PolicyError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import TypeKind
from secateur.partitioning.types.sql_text import quoted, text_literal
from secateur.protocol.tokens import GrantedToken, Privilege, TableGrant, TokenRole, grants_text


class DefinedRole(msgspec.Struct, frozen=True):
    """A role that was made by CREATE ROLE: its name, case-folded, and its grants."""

    name: str
    grants: tuple[TableGrant, ...] = ()


class PolicyCommand(StrEnum):
    """The statements for which a policy holds."""

    ALL = "all"
    SELECT = "select"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class RowCondition(msgspec.Struct, frozen=True, array_like=True):
    """A condition on one row of a table, in which claims of the reader stand.

    Attributes:
        pieces: Its text, cut at the claims: an expression of DuckDB, the name of a claim, an expression, and so on.
            With a value in place of each claim they are one expression.
        columns: The columns that it reads, as the table spells them.
    """

    pieces: tuple[str, ...]
    columns: tuple[str, ...] = ()

    @property
    def claims(self) -> tuple[str, ...]:
        """The names of the claims, in the order of the text."""
        return self.pieces[1::2]

    @property
    def text(self) -> str:
        """The condition as it is shown."""
        return self.sql(session_call)

    @property
    def compared(self) -> str | None:
        """The column that has to be equal to a claim, if that is the whole condition, as it is nearly always."""
        first, *rest = self.pieces
        for name in self.columns if len(self.columns) == 1 and rest == [*self.claims, ""] else ():
            if first in (f"{name} = ", f"{quoted(name)} = "):
                return name
        return None

    def compared_text(self, table: TableDef) -> str | None:
        """The same column where it holds texts: it can be compared with the claim as it is."""
        name = self.compared
        return name if name is not None and table.column(name).type.kind is TypeKind.VARCHAR else None

    def sql(self, value: Callable[[str], str]) -> str:
        """The condition with ``value(name)`` in place of each claim."""
        return "".join(value(piece) if place % 2 else piece for place, piece in enumerate(self.pieces))


def session_call(claim: str) -> str:
    """The function that stands for a claim, as users write it."""
    return f"session({text_literal(claim)})"


TENANT: Final = "tenant"
"""The claim that says whose statements are whose, unless another one is named."""
NO_ROW: Final = RowCondition(("false",))
"""The condition of a table for which no policy lets a row pass."""


class Policy(msgspec.Struct, frozen=True):
    """A policy on a table.

    Attributes:
        name: Unique on its table, without regard to case.
        table_id: The origin of the table (:attr:`~secateur.partitioning.tables.table.TableDef.origin`), which stays
            when it is altered.
        command: The statements for which it holds.
        roles: The case-folded names of the roles for which it holds; empty for everybody.
        using: Which rows of the table there are for those; None for a policy of INSERT, which has no rows to read.
        check: Which rows they may write; None for those of ``using``.
    """

    name: str
    table_id: int
    command: PolicyCommand
    roles: tuple[str, ...]
    using: RowCondition | None
    check: RowCondition | None = None

    def holds_for(self, roles: frozenset[str], command: PolicyCommand) -> bool:
        """Whether it is one of the policies of a command for the bearer of some roles."""
        return self.command in (PolicyCommand.ALL, command) and (not self.roles or not roles.isdisjoint(self.roles))


class ResourceGroup(msgspec.Struct, frozen=True):
    """What each of some tenants gets of a member, and may ask of it. All limits are those of one tenant at one member.

    Attributes:
        name: Its name, case-folded.
        roles: The case-folded names of the roles whose bearers it is for; empty for everybody who is in no other.
        weight: Their processor time in relation to that of other tenants.
        max_running: Statements that run at once, of those that have to be admitted.
        statement_timeout_ms: Milliseconds after which a statement is cancelled.
        max_memory: Bytes that the result of a statement may hold.
        max_rows: Rows that the result of a statement may have.
        rate: Statements a second; as many may come at once.
    """

    name: str
    roles: tuple[str, ...] = ()
    weight: float = 1.0
    max_running: int | None = None
    statement_timeout_ms: int | None = None
    max_memory: int | None = None
    max_rows: int | None = None
    rate: float | None = None


class AccessRecord(msgspec.Struct, frozen=True):
    """Everything that says who may do what, and how much of it.

    Attributes:
        tokens: The tokens that are valid beside that of the cluster.
        roles: The roles that were made.
        policies: The policies, in the order in which they were made.
        secured: The origins of the tables with row security.
        groups: The resource groups, in the order in which they were made.
        revoked: Signed tokens that are valid no more, though they have not ended.
    """

    tokens: tuple[GrantedToken, ...] = ()
    roles: tuple[DefinedRole, ...] = ()
    policies: tuple[Policy, ...] = ()
    secured: tuple[int, ...] = ()
    groups: tuple[ResourceGroup, ...] = ()
    revoked: tuple[GrantedToken, ...] = ()

    @property
    def listed_tokens(self) -> tuple[GrantedToken, ...]:
        """The tokens that have not ended, without their digests, oldest first; behind them those that were revoked."""
        known = (*self.tokens, *self.revoked)
        return tuple(replace(token, digest=b"") for token in known if not token.is_over)

    def tenant_column(self, table: TableDef, claim: str) -> str | None:
        """The column of a table that its policies compare with a claim; None where none does."""
        for policy in self.policies_of(table.origin):
            for condition in (policy.using, policy.check):
                if condition is not None and condition.claims == (claim,) and (found := condition.compared):
                    return found
        return None

    def role(self, name: str) -> DefinedRole | None:
        """The role of a name, without regard to case."""
        folded = name.casefold()
        return next((role for role in self.roles if role.name == folded), None)

    def group(self, name: str) -> ResourceGroup | None:
        """The resource group of a case-folded name."""
        return next((group for group in self.groups if group.name == name), None)

    def policies_of(self, table_id: int) -> tuple[Policy, ...]:
        """The policies on a table, by its origin."""
        return tuple(policy for policy in self.policies if policy.table_id == table_id)


class KnownAccess(msgspec.Struct, frozen=True):
    """The part that members read of the state of the controller."""

    access: AccessRecord = AccessRecord()


class WriteKind(Enum):
    """What a member is asked to do with rows that others have made; the policies of each are others."""

    INSERT = "insert"
    """New rows, of keys that are not there: an existing one is an error, or left alone."""
    UPSERT = "upsert"
    """New rows, which replace those with their keys."""
    UPDATE = "update"
    """Rows in place of those of the same keys, which were found by a plan with the policies of an UPDATE."""
    DELETE = "delete"
    """Keys of rows to delete."""


class PolicyFilter(NamedTuple):
    """A condition that policies put on the rows of a scan, or on rows that are written.

    Attributes:
        condition: The condition.
        policies: The names of the policies that it comes from.
        command: For a scan, what is done with its rows.
    """

    condition: RowCondition
    policies: tuple[str, ...]
    command: PolicyCommand = PolicyCommand.SELECT


class TableGuard:
    """The policies on one table that hold for one principal.

    Args:
        policies: The policies on the table.
        roles: The roles of the principal, case-folded.
    """

    def __init__(self, policies: Sequence[Policy], roles: frozenset[str]) -> None:
        self._policies = policies
        self._roles = roles
        seen = self._using(PolicyCommand.SELECT)
        updated, deleted = self._using(PolicyCommand.UPDATE), self._using(PolicyCommand.DELETE)
        self.scans: Final[Mapping[PolicyCommand, PolicyFilter]] = {
            PolicyCommand.SELECT: seen,
            PolicyCommand.UPDATE: _all_of(seen, updated, command=PolicyCommand.UPDATE),
            PolicyCommand.DELETE: _all_of(seen, deleted, command=PolicyCommand.DELETE),
            PolicyCommand.ALL: _all_of(seen, updated, deleted, command=PolicyCommand.ALL),
        }
        """The rows that there are for a SELECT; those that an UPDATE, a DELETE, or a MERGE with both may change."""
        self.writes: Final[Mapping[WriteKind, PolicyFilter]] = {
            WriteKind.INSERT: self._check(PolicyCommand.INSERT),
            # As all of its columns are of the key, the row that is replaced passes where the new one does.
            WriteKind.UPSERT: _all_of(
                self._check(PolicyCommand.INSERT),
                self._check(PolicyCommand.UPDATE),
                self.scans[PolicyCommand.UPDATE],
            ),
            WriteKind.UPDATE: self._check(PolicyCommand.UPDATE),
            WriteKind.DELETE: self.scans[PolicyCommand.DELETE],
        }
        """The rows that may be written."""

    @property
    def claims(self) -> frozenset[str]:
        """The claims that scans of the table read."""
        return frozenset(claim for guard in self.scans.values() for claim in guard.condition.claims)

    def replaced_by(self, kind: WriteKind) -> frozenset[str]:
        """The columns that say of the rows which are replaced, or deleted by their keys, whether they may be."""
        match kind:
            case WriteKind.UPSERT:
                return frozenset(self.scans[PolicyCommand.UPDATE].condition.columns)
            case WriteKind.DELETE:
                return frozenset(self.scans[PolicyCommand.DELETE].condition.columns)
            case WriteKind.INSERT | WriteKind.UPDATE:
                return frozenset()

    def __repr__(self) -> str:
        return repr({command.value: guard.condition.text for command, guard in self.scans.items()})

    def _using(self, command: PolicyCommand) -> PolicyFilter:
        return self._any(command, lambda policy: policy.using)

    def _check(self, command: PolicyCommand) -> PolicyFilter:
        return self._any(command, lambda policy: policy.check or policy.using)

    def _any(self, command: PolicyCommand, of: Callable[[Policy], RowCondition | None]) -> PolicyFilter:
        """The conditions of the policies of a command, joined by OR."""
        policies = [policy for policy in self._policies if policy.holds_for(self._roles, command)]
        held = [(policy.name, condition) for policy in policies if (condition := of(policy)) is not None]
        if not held:
            return PolicyFilter(NO_ROW, ())
        return PolicyFilter(_joined([condition for _, condition in held], " OR "), tuple(name for name, _ in held))


def _all_of(*filters: PolicyFilter, command: PolicyCommand = PolicyCommand.SELECT) -> PolicyFilter:
    names = tuple(dict.fromkeys(name for one in filters for name in one.policies))
    conditions = list(dict.fromkeys(one.condition for one in filters))
    return PolicyFilter(_joined(conditions, " AND "), names, command)


def _joined(conditions: Sequence[RowCondition], word: str) -> RowCondition:
    if len(conditions) == 1:
        return conditions[0]
    pieces = [""]
    for place, condition in enumerate(conditions):
        first, *rest = condition.pieces
        pieces[-1] += f"{word if place else ''}({first}"
        pieces += rest
        pieces[-1] += ")"
    columns = dict.fromkeys(name for condition in conditions for name in condition.columns)
    return RowCondition(tuple(pieces), tuple(columns))


_TELLING: Final = frozenset(
    f"secateur.{name}"
    for name in (
        "statements",
        "newest_statements",
        "running_statements",
        "statement_summaries",
        "hot_keys",
        "partitions",
        "events",
        "loads",
        "jobs",
        "tokens",
        "tenants",
    )
)
"""The system tables in which values of rows, or what others do, can be read."""
_LISTING: Final = frozenset(f"secateur.{name}" for name in ("tables", "columns", "checks", "indexes"))
"""The system tables that describe tables, one in each row: who has grants reads what they say of the granted ones."""
Admitted: TypeAlias = dict[str, tuple[tuple[int, str | None], ...]]
"""Plans that a principal may execute, by their ids: the parameters that are claims, by index, with their values."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What a principal may do that does not own the cluster. Whoever may do everything has no such object.

    Attributes:
        token: Its token.
        tables: The case-folded names of the tables that it may use, by privilege; None for all tables.
        guards: By origin, the policies on the tables that have row security.
        scope: A digest of everything by which its plans differ from those of others: equal for all tenants of a role.
        admitted: The plans that were found to be good for it, where this process executes them.
    """

    token: GrantedToken
    tables: Mapping[Privilege, frozenset[str]] | None
    guards: Mapping[int, TableGuard]
    scope: str = field(compare=False)
    admitted: Admitted = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, token: GrantedToken, access: AccessRecord) -> Rights | None:
        """The rights of a token; None for one that may do everything that its role allows.

        Cost: some microseconds for each policy.
        """
        if token.is_owner or not (token.is_limited or access.secured):
            return None
        roles = frozenset(token.roles)
        tables = None
        if token.is_limited:
            held = [*token.tables, *(grant for role in access.roles if role.name in roles for grant in role.grants)]
            tables = {
                privilege: frozenset(grant.table for grant in held if grant.privilege is privilege)
                for privilege in Privilege
            }
        guards = {table_id: TableGuard(access.policies_of(table_id), roles) for table_id in access.secured}
        described = repr((None if tables is None else sorted((p, sorted(t)) for p, t in tables.items()), guards))
        return cls(token, tables, guards, blake2b(described.encode(), digest_size=12).hexdigest())

    @property
    def is_limited(self) -> bool:
        """Whether it is for some tables only."""
        return self.tables is not None

    def claim(self, name: str) -> str | None:
        """The value of a claim; None without it."""
        return self.token.claims.get(name)

    @property
    def _has_grants(self) -> bool:
        """Whether it may list tables: those with a grant."""
        return self.tables is not None and any(self.tables.values())

    def may_name(self, table: str) -> bool:
        """Whether something may be done with a table, by its case-folded name: then its columns may be known."""
        return self.tables is None or any(table in granted for granted in self.tables.values())

    def check_names(self, table: str) -> None:
        """Refuse to tell of a table, by its case-folded name, as :meth:`check_reads` does, unless it may be named."""
        if self.tables is None or not self.may_name(table):
            self.check_reads((table,))

    def listed(self, name: str) -> PolicyFilter | None:
        """The condition on the rows of a system table, by its name; None where all may be read, or none."""
        if self.tables is None or not self._has_grants:
            return None
        if f"secateur.{name}" not in _LISTING - self.tables[Privilege.SELECT]:
            return None
        named = ", ".join(map(text_literal, sorted(frozenset().union(*self.tables.values()))))
        return PolicyFilter(RowCondition((f"lower(table_name) IN ({named})",), ("table_name",)), ("grants",))

    def check_reads(self, tables: Iterable[str]) -> None:
        """Refuse to read tables.

        Args:
            tables: Case-folded names. Cost: a tenth of a microsecond for a frozenset of a few.

        Raises:
            AuthenticationError: One of them was not granted.
        """
        if self.tables is None:
            told = _TELLING.intersection(tables) if self.guards else ()
            if told:
                raise PolicyError(
                    f"{', '.join(sorted(told))} tells of statements and values of others: under row policies it is for"
                    " roles to which it was granted"
                )
            return
        missing = frozenset(tables) - self.tables[Privilege.SELECT]
        if missing and self._has_grants:
            missing -= _LISTING
        if missing:
            raise self._refusal([TableGrant(table, Privilege.SELECT) for table in missing])

    def check_write(self, table: str, privileges: Iterable[Privilege]) -> None:
        """Refuse to change a table.

        Args:
            table: Its name, in any case.
            privileges: What the change needs.

        Raises:
            AuthenticationError: One of them was not granted.
        """
        if self.tables is None:
            return
        folded = table.casefold()
        missing = [TableGrant(folded, privilege) for privilege in privileges if folded not in self.tables[privilege]]
        if missing:
            raise self._refusal(missing)

    def refusal_of(self, what: str) -> AuthenticationError:
        """The error for what needs a token for all tables."""
        return AuthenticationError(
            f"{what} needs a token for all tables, and the token {self.token.id!r} of this connection has"
            f" {self.token.title!r}; nothing was done: ask who has a token with the role 'admin'"
        )

    def unseen(self, what: str, table: str) -> AuthenticationError:
        """The error for what would show rows of a table that policies hide."""
        return PolicyError(
            f"{what} of {table} is not for a principal under row policies, and table {table} has row security: read it"
            " with SQL",
            table=table,
        )

    def _refusal(self, grants: Sequence[TableGrant]) -> AuthenticationError:
        right, roles = grants_text(grants), self.token.roles
        granted = (grant.sql(roles[0]) for grant in grants if roles)
        return AuthenticationError(
            f"this needs a token with {right!r}, and the token {self.token.id!r} of this connection has"
            f" {self.token.title!r}; nothing was done: who has a token with the role 'admin' can"
            f" {'; '.join(granted) or f'make one by tokens.create({right!r})'}"
        )


BUILT_IN_ROLES: Final = frozenset(role.title for role in TokenRole)
"""The names that CREATE ROLE does not give."""
