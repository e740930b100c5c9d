"""Values in the arguments of a source: given when it is made, or bound to the parameters of the job."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from secateur.dag.parameter import Param, bind_value
from secateur.dag.processor import Params

__all__ = ["Binding", "GivenValue", "binding_of", "bound"]


class GivenValue(msgspec.Struct, frozen=True, array_like=True, tag="value"):
    """A value that does not depend on parameters."""

    value: Any


Binding: TypeAlias = Param | GivenValue


def binding_of(value: Any) -> Binding:
    """Wrap a value, unless it is a :class:`~secateur.dag.parameter.Param`."""
    return value if isinstance(value, Param) else GivenValue(value)


def bound(binding: Binding, params: Params) -> Any:
    """The value for the parameters of a job.

    Raises:
        ParameterError: The job was started without that parameter.
    """
    return binding.value if isinstance(binding, GivenValue) else bind_value(binding, params)
