"""Lets the user's own function configure OpenTelemetry in a process of the cluster."""

from __future__ import annotations

import importlib

from secateur.errors import ProgrammingError


def configure_tracing(function: str | None) -> None:
    """Call the function of the setting ``tracing``, named ``module:function``; nothing for None.

    Raises:
        ProgrammingError: It cannot be found in this process, or fails.
    """
    if function is None:
        return
    module, _, name = function.partition(":")
    try:
        getattr(importlib.import_module(module), name)()
    except Exception as error:
        raise ProgrammingError(
            f"tracing={function!r} could not be called in a process of the cluster ({type(error).__name__}: {error}):"
            " the module has to be importable there, as what ray_actor_options={'runtime_env': ...} or an installed"
            " package makes it, and the library installed: pip install 'secateur[otel]'"
        ) from error
