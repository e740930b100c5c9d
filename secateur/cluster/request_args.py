"""What the arguments of a request have to be, checked before anybody reads them: whoever knows the token may send
anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from secateur.errors import ProtocolError
from secateur.wire import Request

__all__ = ["CONTROLLER_ARGS", "MEMBER_ARGS", "check_args"]

ArgTypes: TypeAlias = Mapping[str, tuple[type, ...]]

_STATEMENT: Final[ArgTypes] = {"sql": (str,), "params": (list, dict)}
_LOAD: Final[ArgTypes] = {"load_id": (str,)}
_CHANGE: Final[ArgTypes] = {"plan": (str,), "params": (list,), "pruning": (bool,), "operation": (str,)}
_WHOLE: Final[ArgTypes] = {
    **_LOAD,
    "plan": (str,),
    "params": (list,),
    "pruning": (bool,),
    "meeting": (str,),
    "returning": (str, type(None)),
    "names_action": (bool,),
    "table_id": (int,),
}
_JOB: Final[ArgTypes] = {"job": (str,)}
_ATTEMPT: Final[ArgTypes] = {**_JOB, "attempt": (int,)}

CONTROLLER_ARGS: Final[Mapping[str, ArgTypes]] = {
    "prepare": _STATEMENT,
    "explain": _STATEMENT,
    "plan": {"plan_id": (str,)},
    "load_publish": {**_LOAD, "table": (str,), "mode": (str,), "parts": (dict,)},
    "load_abort": _LOAD,
    "system_table": {"table": (str,)},
    "table_versions": {"tables": (list,)},
    "change": {**_CHANGE, **_LOAD},
    "table_statistics": {"table": (str,)},
    "change_whole": {**_WHOLE, "table": (str,), "table_version": (int,)},
    "make_ranges": {"table": (str,), "table_id": (int,), "cells": (list,)},
    "join": {"member": (str,), "host": (str,), "port": (int,)},
    "new_member": {"cluster": (str,)},
    "lease": {"cluster": (str,), "member": (str,), "stalled_s": (float,), "written": (dict,)},
    "member_lost": {"member": (str,)},
    "copy_lost": {"group": (str,), "partition": (int,), "member": (str,)},
    "job_new": {**_JOB, "config": (dict,), "needs": (list,), "params": (list, dict), "if_absent": (bool,)},
    "job_wait": {**_JOB, "wait_s": (int, float)},
    "job_cancel": _JOB,
    "job_plan": _JOB,
    "job_ended": {**_ATTEMPT, "member": (str,), "failure": (dict, type(None)), "members": (list,), "metrics": (list,)},
}
MEMBER_ARGS: Final[Mapping[str, ArgTypes]] = {
    "execute": {"plan": (str,), "params": (list,), "pruning": (bool,)},
    "profile": {"plan": (str,), "params": (list,), "pruning": (bool,), "rows": (bool,)},
    "result_next": {"grant": (int,)},
    "copy_table": {"table_id": (int,)},
    "catch_up": {"table": (dict,), "source": (str, type(None))},
    "promise": {"member": (str,), "topology_version": (int,)},
    "plan": {"plan_id": (str,)},
    "job_submit": {**_JOB, "config": (dict,), "params": (list, dict)},
    "job_resolve": {"config": (dict,), "params": (list, dict)},
    "job_stop": _JOB,
    "job_run": {**_ATTEMPT, "config": (dict,), "params": (list, dict)},
    "job_halt": {**_ATTEMPT, "error": (dict,)},
    "job_result": _JOB,
    "job_metrics": _JOB,
    "job_counters": _JOB,
    "change": {**_CHANGE, "change_id": (str,)},
    "change_stage": {**_CHANGE, **_LOAD, "partitions": (list,)},
    "change_close": {**_LOAD, "table_id": (int,)},
    "change_work_out": _WHOLE,
    "change_returned": _LOAD,
    "write": {"table_id": (int,), "partition": (int,), "mode": (str,)},
    "write_copy": {
        "table_id": (int,),
        "partition": (int,),
        "mode": (str,),
        "change_id": (str,),
        "sequence": (int,),
        "term": (int,),
        "settled": (int,),
    },
    "copies_tails": {"table_id": (int,), "term": (int,), "partitions": (list,)},
    "copies_settled": {"copies": (list,)},
    "stage": {**_LOAD, "table_id": (int,), "attempt": (int,), "parts": (list,)},
    "stage_copy": {**_LOAD, "table_id": (int,), "attempt": (int,), "parts": (list,)},
    "load_prepare": {**_LOAD, "table_id": (int,), "mode": (str,), "parts": (list,)},
    "load_publish": {**_LOAD, "number": (int,)},
    "load_abort": _LOAD,
    "load_hold": _LOAD,
    "load_standing": _LOAD,
    "load_decide": _LOAD,
    "load_settle": {**_LOAD, "published": (bool,), "number": (int,)},
    "create_table": {"table": (dict,), "partitions": (list,)},
    "drop_table": {"table_id": (int,)},
    "statistics": {"table_id": (int,), "partitions": (list,)},
    "views": {"catalog_version": (int,), "views": (list,)},
    "alter_prepare": {**_LOAD, "table_id": (int,), "version": (int,), "partitions": (list,)},
    "alter_commit": {**_LOAD, "table_id": (int,), "version": (int,)},
    "alter_abort": {**_LOAD, "table_id": (int,), "version": (int,)},
    "alter_hold": _LOAD,
    "alter_standing": _LOAD,
    "alter_decide": _LOAD,
    "alter_settle": {**_LOAD, "published": (bool,), "number": (int,)},
}


def check_args(request: Request, types: Mapping[str, ArgTypes]) -> None:
    """Refuse a request that lacks an argument or has one of another type. Costs half a microsecond.

    Raises:
        ProtocolError: Names the argument.
    """
    args = request.args
    for name, wanted in types.get(request.op, {}).items():
        if type(args.get(name)) not in wanted:
            given = type(args[name]).__name__ if name in args else "nothing"
            raise ProtocolError(
                f"{request.op} needs the argument {name!r} as {' or '.join(kind.__name__ for kind in wanted)}, and got"
                f" {given}"
            )
