"""Values in the arguments of a source: given when it is made, or bound to the parameters of the job."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from secateur.client.dbapi.parameters import plain_value
from secateur.dag.parameter import Param, bind_value
from secateur.dag.processor import Params


class GivenValue(msgspec.Struct, frozen=True, array_like=True, tag="value"):
    """A value that does not depend on parameters."""

    value: Any


Binding: TypeAlias = Param | GivenValue


def binding_of(value: Any, where: str) -> Binding:
    """Wrap a value, as a statement takes it, unless it is a :class:`~secateur.dag.parameter.Param`.

    Raises:
        ParameterError: No column holds it; the message has ``where``.
    """
    return value if isinstance(value, Param) else GivenValue(plain_value(value, where))


def bound(binding: Binding, params: Params) -> Any:
    """The value for the parameters of a job.

    Raises:
        ParameterError: The job was started without that parameter.
    """
    return binding.value if isinstance(binding, GivenValue) else bind_value(binding, params)
