"""The one table of what the bearer of a token needs to make a request.

It has every operation that clients may request; ``callers`` of the operation says who else may. A server looks here
before a handler sees the request. PREPARE is open to readers, because the text has to be read to know what it does:
the controller then asks the statement for its ``role``. A new operation that is not here needs the highest role.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from secateur.protocol.operation import OperationBase
from secateur.protocol.operations import Operation
from secateur.protocol.table_rights import TokenRole

ROLES: Final[Mapping[OperationBase, TokenRole]] = {
    Operation.HELLO: TokenRole.READ,
    Operation.GET_TOPOLOGY: TokenRole.READ,
    Operation.GET_TABLES: TokenRole.READ,
    Operation.GET_TABLE_VERSIONS: TokenRole.READ,
    Operation.GET_OWNERS: TokenRole.READ,
    Operation.GET_OWNER_PAGES: TokenRole.READ,
    Operation.GET_RANGES: TokenRole.READ,
    Operation.REFRESH_STATISTICS: TokenRole.READ,
    Operation.PREPARE: TokenRole.READ,
    Operation.EXPLAIN: TokenRole.READ,
    Operation.EXECUTE: TokenRole.READ,
    Operation.EXECUTE_MANY: TokenRole.READ,
    Operation.EXECUTE_FIRST_STAGE: TokenRole.READ,
    Operation.PROFILE: TokenRole.READ,
    Operation.NEXT_ROWS: TokenRole.READ,
    Operation.CLOSE_RESULT: TokenRole.READ,
    Operation.GET_ROWS: TokenRole.READ,
    Operation.OPEN_SNAPSHOT: TokenRole.READ,
    Operation.READ_SNAPSHOT: TokenRole.READ,
    Operation.CLOSE_SNAPSHOT: TokenRole.READ,
    Operation.READ_CHANGES: TokenRole.READ,
    Operation.BOUND_CHANGES: TokenRole.READ,
    Operation.LIST_JOBS: TokenRole.READ,
    Operation.WAIT_FOR_JOB: TokenRole.READ,
    Operation.GET_JOB_PLAN: TokenRole.READ,
    Operation.GET_JOB_METRICS: TokenRole.READ,
    Operation.MAKE_RANGES: TokenRole.WRITE,
    Operation.PUBLISH_LOAD: TokenRole.WRITE,
    Operation.ABORT_LOAD: TokenRole.WRITE,
    Operation.CHANGE_ONE_PARTITION: TokenRole.WRITE,
    Operation.CHANGE_MANY: TokenRole.WRITE,
    Operation.CHANGE_SEVERAL_PARTITIONS: TokenRole.WRITE,
    Operation.CHANGE_TABLE: TokenRole.WRITE,
    Operation.GET_RETURNED_ROWS: TokenRole.WRITE,
    Operation.WRITE_ROWS: TokenRole.WRITE,
    Operation.WRITE_MANY: TokenRole.WRITE,
    Operation.STAGE_ROWS: TokenRole.WRITE,
    Operation.DROP_UNUSED_TABLE: TokenRole.ADMIN,
    Operation.CREATE_TOKEN: TokenRole.ADMIN,
    Operation.LIST_TOKENS: TokenRole.ADMIN,
    Operation.REVOKE_TOKEN: TokenRole.ADMIN,
    Operation.REGISTER_EXTERNAL_TABLE: TokenRole.CODE,
    Operation.NEW_JOB: TokenRole.CODE,
    Operation.SUBMIT_JOB: TokenRole.CODE,
    Operation.RESOLVE_JOB: TokenRole.CODE,
    Operation.CANCEL_JOB: TokenRole.CODE,
    Operation.STOP_JOB: TokenRole.CODE,
    Operation.GET_JOB_RESULT: TokenRole.CODE,
    Operation.GET_JOB_LOGS: TokenRole.CODE,
}


def role_needed(operation: OperationBase) -> TokenRole:
    """The lowest role that may request an operation."""
    return ROLES.get(operation, TokenRole.CODE)
