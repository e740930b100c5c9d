"""The optional native part: ``secateur_native``, a distribution of its own, which does nothing that Python does not do.

``SECATEUR_NATIVE=0`` switches it off. Without it, or with one of another format, everything works in the same way, and
short statements take longer at the member.
"""

from __future__ import annotations

import importlib
import logging
import os
from types import ModuleType
from typing import Final

_log = logging.getLogger(__name__)
FORMAT: Final = 7
"""The form of what Python and the native part hand to each other."""
OFF: Final = "0"


def native_module() -> ModuleType | None:
    """The native part; None where it is not installed, of another format, or switched off."""
    if os.environ.get("SECATEUR_NATIVE", "") == OFF:
        return None
    try:
        module = importlib.import_module("secateur_native")
    except ImportError:
        return None
    if module.FORMAT != FORMAT:
        _log.warning(
            "secateur-native has format %s, this secateur needs %s, so short statements run without it: install the"
            " version that belongs to this one, or `pip uninstall secateur-native`",
            module.FORMAT,
            FORMAT,
        )
        return None
    return module
