"""References to job parameters inside a DAG that is built before the parameters are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from secateur.dag.processor import Params
from secateur.errors import ParameterError


class Param(msgspec.Struct, frozen=True, array_like=True, tag="parameter"):
    """A placeholder for a parameter of the job, which each run binds.

    Attributes:
        key: Position from 0, or name.
    """

    key: int | str


def bind_value(value: Any, params: Params) -> Any:
    """Return the value itself, or the value of the parameter if it is a :class:`Param`.

    Raises:
        ParameterError: The job was started without that parameter.
    """
    if not isinstance(value, Param):
        return value
    key = value.key
    if isinstance(params, Mapping):
        if isinstance(key, str) and key in params:
            return params[key]
        raise ParameterError(
            f"the DAG needs the parameter {key!r}, but the job was started with"
            f" {', '.join(map(repr, params)) or 'no parameters'}"
        )
    if isinstance(key, int) and 0 <= key < len(params):
        return params[key]
    raise ParameterError(
        f"the DAG needs the parameter {key!r}, but the job was started with {len(params)} positional parameters"
    )
