"""What can be submitted, as far as a client has to know it, and how it travels."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from secateur.client.session import Session
from secateur.errors import ParameterError
from secateur.wire import pack

__all__ = ["FrozenSubmittable", "Params", "Submittable", "SubmittableConfig", "submission"]

Params: TypeAlias = Sequence[Any] | Mapping[str, Any]


class Submittable(Protocol):
    """A DAG, as far as a client has to know it: one that is being built, or a complete one."""

    def freeze(self) -> FrozenSubmittable:
        """The complete and valid DAG."""


class FrozenSubmittable(Protocol):
    """A complete and valid DAG."""

    def to_wire(self) -> dict[str, Any]:
        """The DAG as plain data; functions in it by cloudpickle."""


class SubmittableConfig(Protocol):
    """The arguments of a job, as far as a client has to know them."""

    @property
    def required_partitions(self) -> Mapping[str, frozenset[int]] | None:
        """By table name or affinity group; None when the job does not say."""

    def to_wire(self) -> dict[str, Any]:
        """Plain data."""


def submission(session: Session, dag: Submittable, config: SubmittableConfig, params: Params) -> tuple[dict[str, Any], bytes]:
    """The arguments and the payload of a request that carries a job, which gets its id here.

    Raises:
        InterfaceError: The connection is closed.
        ParameterError: It is no DAG, or no config.
        DagError: The DAG is not valid.
        SerializationError: A function in it cannot be pickled.
    """
    session.check_open()
    if not hasattr(dag, "freeze") or not hasattr(config, "to_wire"):
        raise ParameterError("submit takes a secateur.DAG and a secateur.JobConfig")
    plan = pack(dag.freeze().to_wire())
    values = dict(params) if isinstance(params, Mapping) else list(params)
    return {"job": uuid.uuid4().hex, "config": config.to_wire(), "params": values}, plan
