"""One kernel call from inside a processor: on the loop when it is sure to be short, otherwise in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.dag.processor import Offload, Params, ProcessorContext
from secateur.dag.supplier import SupplierContext
from secateur.engine.kernels.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.services import FragmentRunner, MemberServices
from secateur.errors import InternalError

__all__ = ["FragmentCall"]

_INLINE_ROWS_MAX: Final = 5_000
"""Up to here the arrow kernel takes less time than handing the call to a thread and back."""


class FragmentCall:
    """A fragment with what it needs to run on this member. Shared by the processors of a supplier."""

    def __init__(self, fragment: Fragment, run: FragmentRunner, cancellation: Cancellation, params: Sequence[Any]) -> None:
        self.fragment = fragment
        self._run = run
        self._cancellation = cancellation
        self._params = params

    @classmethod
    def of(cls, fragment: Fragment, context: SupplierContext) -> FragmentCall:
        """From the services of the member and the parameters of the job."""
        return cls(fragment, context.service(MemberServices).run_fragment, context.service(Cancellation), positional(context.params))

    def begin(self, context: ProcessorContext, relations: Mapping[str, pa.Table]) -> Callable[[], pa.Table | None]:
        """Start the call.

        Returns:
            A function that returns the result once there is one, None before, and raises what the kernel raised.
        """
        if self.fragment.arrow is not None and sum(table.num_rows for table in relations.values()) <= _INLINE_ROWS_MAX:
            result = self._run(self.fragment, relations, self._params, cancellation=self._cancellation)
            return lambda: result
        offload: Offload[pa.Table] = context.offload(lambda: self._run(self.fragment, relations, self._params, cancellation=self._cancellation))
        return lambda: offload.result() if offload.done() else None


def positional(params: Params) -> Sequence[Any]:
    """The parameters of a job whose fragments count them from 1."""
    if isinstance(params, Mapping):
        if params:
            raise InternalError("a job of SQL fragments was started with named parameters; the planner numbers them")
        return ()
    return params
