"""Roles, grants, row policies, resource groups and tokens at the controller.

Every change counts once every process of the cluster acts on it. The catalog gets another version with each, so that
clients prepare their statements again: a plan has the conditions of policies in it, but nothing of resource groups,
nor of tokens.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Final, assert_never

from msgspec.structs import replace

from secateur.cluster.controller.cluster_state import ClusterState
from secateur.errors import AuthenticationError, LimitExceededError, ProgrammingError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.planner import statement as planned
from secateur.planner.system.tables import SCHEMA, SYSTEM_TABLES
from secateur.protocol import tokens
from secateur.protocol.access import AccessRecord, DefinedRole, Policy, ResourceGroup
from secateur.protocol.tokens import Privilege, TableGrant, TokenRole
from secateur.wire import Reply, Request

_ROLES_MAX: Final = 1000
_POLICIES_MAX: Final = 1000
_GROUPS_MAX: Final = 1000
_TOKENS_MAX: Final = 1000
_REVOKED_MAX: Final = 1000
_REVOKED_S: Final = 3600.0
"""A signed token that was revoked is remembered so much longer than it is valid: a member's clock may be behind."""
_TOKEN_BYTES: Final = 32
_NAME_CHARS_MAX: Final = 200
_SHOWN_CHARS: Final = 16
"""What was given as the id of a token may be a secret."""
_TABLES_MAX: Final = 1000
_CLAIMS_MAX: Final = 32
_CLAIM_CHARS_MAX: Final = 1000
_LIFETIME_S_MAX: Final = 100 * 366 * 86400
"""A calendar that ends in the year 9999 has to show the end."""


class AccessCommands:
    """Carries them out. Lives on the controller's event loop."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    async def carry_out(self, command: planned.AccessCommand) -> str:
        """Carry out a command; returns what was done.

        Raises:
            ProgrammingError: There is no such role or policy, or there is one already.
            TopologyChangedError: The table was dropped, or created again, since the statement was planned.
            LimitExceededError: There are too many.
        """
        async with self._state.changing:
            before = self._state.access
            access, done = self._after(command, before)
            self._state.access = access
            if access is not before and access.groups == before.groups:  # plans know nothing of resource groups
                catalog = self._state.catalog
                self._state.catalog = dataclasses.replace(catalog, version=catalog.version + 1)
            return done

    def _after(self, command: planned.AccessCommand, access: AccessRecord) -> tuple[AccessRecord, str]:
        if isinstance(command, planned.GroupCommand):
            return _after_group_command(command, access)
        match command:
            case planned.CreateRole(name, if_not_exists):
                if access.role(name) is None:
                    if len(access.roles) >= _ROLES_MAX:
                        raise LimitExceededError(f"there are {_ROLES_MAX} roles: drop some", limit="roles_max")
                    return replace(access, roles=(*access.roles, DefinedRole(name))), "role created"
                if not if_not_exists:
                    raise ProgrammingError(f"role {name!r} exists already")
                return access, "role exists"
            case planned.DropRole(name, if_exists):
                if access.role(name) is None and if_exists:
                    return access, "no such role"
                _check_roles(access, (name,))
                self._check_unused(access, name)
                return replace(access, roles=tuple(role for role in access.roles if role.name != name)), "role dropped"
            case planned.GrantTables(grants, roles, is_grant):
                _check_roles(access, roles)
                changed = []
                for role in access.roles:
                    held = dict.fromkeys(role.grants)
                    if role.name in roles:
                        held = {grant: None for grant in held if is_grant or grant not in grants}
                        held |= dict.fromkeys(grants) if is_grant else {}
                    changed.append(replace(role, grants=tuple(held)))
                return replace(access, roles=tuple(changed)), "granted" if is_grant else "revoked"
            case planned.SecureTable(table, enables):
                origin = self._known(table).origin
                secured = [each for each in access.secured if each != origin]
                return (
                    replace(access, secured=(*secured, origin) if enables else tuple(secured)),
                    f"row level security {'enabled' if enables else 'disabled'}",
                )
            case planned.CreatePolicy(name, table, command_, roles, using, check):
                table = self._known(table)
                _check_roles(access, roles)
                if _policy(access, table, name) is not None:
                    raise ProgrammingError(f"policy {name!r} on {table.name} exists already: DROP POLICY it first")
                if len(access.policies) >= _POLICIES_MAX:
                    raise LimitExceededError(f"there are {_POLICIES_MAX} policies: drop some", limit="policies_max")
                policy = Policy(name, table.origin, command_, roles, using, check)
                return replace(access, policies=(*access.policies, policy)), "policy created"
            case planned.DropPolicy(name, table, if_exists):
                found = _policy(access, self._known(table), name)
                if found is None and if_exists:
                    return access, "no such policy"
                if found is None:
                    raise ProgrammingError(f"there is no policy {name!r} on {table.name}")
                kept = tuple(policy for policy in access.policies if policy is not found)
                return replace(access, policies=kept), "policy dropped"
            case _:
                assert_never(command)

    def _known(self, table: TableDef) -> TableDef:
        found = self._state.catalog.find(table.name)
        if found is None or found.origin != table.origin:
            raise TopologyChangedError(
                f"table {table.name} was dropped and created again meanwhile: try again", table=table.name
            )
        return found

    def _check_unused(self, access: AccessRecord, role: str) -> None:
        """Refuse to drop a role that a policy or a group names, which would then be for everybody, or a token."""
        policies = [policy.name for policy in access.policies if role in policy.roles]
        tokens = [token.id for token in access.tokens if role in token.roles and not token.is_over]
        groups = [group.name for group in access.groups if role in group.roles]
        if policies or groups or tokens:
            what = [
                *(f"policy {name}" for name in policies),
                *(f"resource group {name}" for name in groups),
                *(f"token {token_id}" for token_id in tokens),
            ]
            raise ProgrammingError(f"role {role!r} is that of {', '.join(what)}: drop or revoke these first")


def _after_group_command(command: planned.GroupCommand, access: AccessRecord) -> tuple[AccessRecord, str]:
    match command:
        case planned.CreateResourceGroup(group, if_not_exists):
            if access.group(group.name) is not None:
                if if_not_exists:
                    return access, "resource group exists"
                raise ProgrammingError(f"resource group {group.name!r} exists already: ALTER or DROP it")
            _check_roles(access, group.roles)
            if len(access.groups) >= _GROUPS_MAX:
                raise LimitExceededError(f"there are {_GROUPS_MAX} resource groups: drop some", limit="groups_max")
            return replace(access, groups=(*access.groups, group)), "resource group created"
        case planned.AlterResourceGroup(name, limits, roles_):
            before = _group(access, name)
            roles = before.roles if roles_ is None else roles_
            _check_roles(access, roles)
            after = replace(before, **limits, roles=roles)
            altered = tuple(after if group is before else group for group in access.groups)
            return replace(access, groups=altered), "resource group altered"
        case planned.DropResourceGroup(name, if_exists):
            if access.group(name) is None and if_exists:
                return access, "no such resource group"
            dropped = _group(access, name)
            left = tuple(group for group in access.groups if group is not dropped)
            return replace(access, groups=left), "resource group dropped"
        case _:
            assert_never(command)


def without_grants(access: AccessRecord, table: TableDef) -> AccessRecord:
    """The record without the grants on a table with row security that is about to be dropped, as in PostgreSQL.

    One that is created later has the name alone, and no policies. A token that is good for nothing else is revoked.
    """
    return _with_grants(access, table.name, ()) if table.origin in access.secured else access


def with_renamed(access: AccessRecord, before: TableDef, after: TableDef) -> AccessRecord:
    """The record with the grants on a table under its new name."""
    return access if before.name == after.name else _with_grants(access, before.name, (after.name.casefold(),))


def _with_grants(access: AccessRecord, table: str, names: tuple[str, ...]) -> AccessRecord:
    """The record with the grants on a table for the tables of other names."""
    folded = table.casefold()

    def held(grants: Iterable[TableGrant]) -> tuple[TableGrant, ...]:
        return tuple(
            TableGrant(name, grant.privilege)
            for grant in grants
            for name in (names if grant.table == folded else (grant.table,))
        )

    tokens = [replace(token, tables=held(token.tables)) for token in access.tokens]
    return replace(
        access,
        tokens=tuple(
            after
            for before, after in zip(access.tokens, tokens, strict=True)
            if after.is_limited or not before.is_limited
        ),
        roles=tuple(replace(role, grants=held(role.grants)) for role in access.roles),
    )


def check_replacement(access: AccessRecord, table: TableDef) -> None:
    """Refuse to replace a table with row security: who may read the table would see all rows of its successor.

    Raises:
        ProgrammingError: It has row security.
    """
    if table.origin in access.secured:
        raise ProgrammingError(
            f"{table.name} has row level security, which a table that replaces it would not have: DELETE its rows, or"
            " DROP TABLE, with which the grants on it end",
            table=table.name,
        )


def without_table(access: AccessRecord, origin: int) -> AccessRecord:
    """The record without the policies on a table that is dropped."""
    if origin not in access.secured and not access.policies_of(origin):
        return access
    return replace(
        access,
        policies=tuple(policy for policy in access.policies if policy.table_id != origin),
        secured=tuple(each for each in access.secured if each != origin),
    )


def check_columns(access: AccessRecord, before: TableDef, after: TableDef) -> None:
    """Refuse to change columns that a policy reads.

    Raises:
        ProgrammingError: One of them is dropped, renamed or gets another type.
    """
    for policy in access.policies_of(before.origin):
        for condition in filter(None, (policy.using, policy.check)):
            for name in condition.columns:
                kept = next((column for column in after.columns if column.name == name), None)
                if kept is None or kept.type != before.column(name).type:
                    raise ProgrammingError(
                        f"column {name} of {before.name} cannot be changed: policy {policy.name} reads it; DROP POLICY"
                        " it first",
                        table=before.name,
                        column=name,
                    )


def _policy(access: AccessRecord, table: TableDef, name: str) -> Policy | None:
    folded = name.casefold()
    return next((policy for policy in access.policies_of(table.origin) if policy.name.casefold() == folded), None)


def _group(access: AccessRecord, name: str) -> ResourceGroup:
    found = access.group(name)
    if found is None:
        known = ", ".join(group.name for group in access.groups) or "none: CREATE RESOURCE GROUP makes one"
        raise ProgrammingError(f"resource group {name!r} does not exist; there is {known}")
    return found


def _check_roles(access: AccessRecord, roles: tuple[str, ...]) -> None:
    for name in roles:
        if access.role(name) is None:
            known = ", ".join(role.name for role in access.roles) or "none: CREATE ROLE makes one"
            raise ProgrammingError(f"role {name!r} does not exist; there is {known}")


class TokenCommands:
    """Carries out what concerns tokens. Lives on the controller's event loop.

    Args:
        find: Finds the record of a token that is valid, a signed one as well.
        has_token: Whether the cluster asks clients for a token.
    """

    def __init__(
        self, state: ClusterState, find: Callable[[str], tokens.GrantedToken | None], *, has_token: bool
    ) -> None:
        self._state = state
        self._find = find
        self._has_token = has_token

    async def create(self, request: Request[tokens.CreateToken]) -> Reply[tokens.NewToken]:
        """Make a token, which every member that stays accepts by then.

        Raises:
            ProgrammingError: The cluster asks for no token.
            AuthenticationError: The role is above that of the one who asks.
            UnknownTableError: There is no table of a name.
            LimitExceededError: There are too many.
        """
        asked, peer = request.message, request.peer
        if not self._has_token:
            raise ProgrammingError(
                "this cluster was started with token='' and lets everybody in: a token would keep nobody out; start it"
                " with a token"
            )
        if asked.role > peer.token_role:
            raise AuthenticationError(
                f"a token with the role {asked.role.title!r} is made by a token with that role or a higher one, and"
                f" this connection has the role {peer.token_role.title!r}; nothing was done"
            )
        kept = [token for token in self._state.access.tokens if not token.is_over]
        if len(kept) >= _TOKENS_MAX:
            raise LimitExceededError(
                f"there are {_TOKENS_MAX} tokens: revoke those that nobody uses", limit="tokens_max"
            )
        made = tokens.NewToken(secrets.token_hex(4), secrets.token_urlsafe(_TOKEN_BYTES))
        granted = tokens.GrantedToken(
            made.id,
            asked.role,
            tokens.digest_of(made.token),
            asked.name[:_NAME_CHARS_MAX],
            time.time(),
            _checked(asked, self._state),
            asked.principal[:_NAME_CHARS_MAX],
            tuple(dict.fromkeys(role.casefold() for role in asked.roles)),
            asked.claims,
            asked.expires,
        )
        self._state.access = replace(self._state.access, tokens=(*kept, granted))
        await self._state.all_reached()
        return Reply(made)

    def listed(self, _: Request[tokens.ListTokens]) -> Reply[tokens.KnownTokens]:
        """The tokens, oldest first."""
        return Reply(tokens.KnownTokens(self._state.access.listed_tokens))

    async def revoke(self, request: Request[tokens.RevokeToken]) -> Reply[tokens.GrantedToken]:
        """Make a token invalid, at every member that stays.

        Raises:
            ProgrammingError: There is no such token, or it is not valid anyway.
            LimitExceededError: It is a signed one, and there are too many that were revoked.
        """
        given, access = request.message.id, self._state.access
        try:
            found = next((token for token in access.tokens if token.id == given), None) or self._find(given)
        except AuthenticationError as error:
            raise ProgrammingError(f"there is nothing to revoke: {error.message}") from error
        if found is None:
            ids = ", ".join(token.id for token in access.tokens)
            raise ProgrammingError(
                f"there is no token {given[:_SHOWN_CHARS]!r}" + (f"; there are {ids}" if ids else ", nor any other")
            )
        if found.is_signed:
            now, ends = time.time(), found.expires or 0.0
            known = [token for token in access.revoked if (token.expires or 0.0) + _REVOKED_S > now]
            if len(known) >= _REVOKED_MAX:
                raise LimitExceededError(
                    f"{_REVOKED_MAX} JWTs are revoked: have their issuer sign with another key, and take this one out"
                    " of the file of keys",
                    limit="revoked_tokens_max",
                )
            revoked = replace(found, revoked=now, expires=min(ends, now + _LIFETIME_S_MAX))
            self._state.access = replace(access, revoked=(*known, revoked))
        else:
            kept = tuple(token for token in access.tokens if token.id != found.id)
            self._state.access = replace(access, tokens=kept)
        await self._state.all_reached()
        return Reply(replace(found, digest=b""))


def _checked(asked: tokens.CreateToken, state: ClusterState) -> tuple[TableGrant, ...]:
    """The grants of a token that is to be made."""
    grants = tuple(TableGrant(grant.table.casefold(), grant.privilege) for grant in asked.tables)
    if len(grants) > _TABLES_MAX:
        raise LimitExceededError(f"a token may be for {_TABLES_MAX} tables, or for all", limit="token_tables_max")
    if (grants or asked.roles) and asked.role > TokenRole.WRITE:
        raise ProgrammingError("a token for some tables has the role 'read' or 'write' in each of them")
    for role in asked.roles:
        if state.access.role(role) is None:
            built_in = ", ".join(repr(each.title) for each in TokenRole)
            made = ", ".join(each.name for each in state.access.roles) or "nothing yet"
            raise ProgrammingError(f"role={role!r}: it is one of {built_in}, or what CREATE ROLE has made: {made}")
    if len(asked.claims) > _CLAIMS_MAX or any(len(text) > _CLAIM_CHARS_MAX for text in asked.claims.values()):
        raise LimitExceededError(
            f"a token has at most {_CLAIMS_MAX} claims of {_CLAIM_CHARS_MAX} characters each", limit="token_claims_max"
        )
    if asked.expires is not None and not 0 < asked.expires - time.time() <= _LIFETIME_S_MAX:  # nor is it a NaN
        raise ProgrammingError("the token would have expired already, or in more than a century: choose another time")
    for grant in grants:
        schema, _, name = grant.table.rpartition(".")
        if schema != SCHEMA or name not in SYSTEM_TABLES:
            state.catalog.relation(grant.table)
        elif grant.privilege is not Privilege.SELECT:
            raise ProgrammingError(f"nobody changes the system table {grant.table!r}: it may be read")
    return grants
