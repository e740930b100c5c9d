"""The names that a room exports, each loaded from its file at its first use.

A room of many files lists here what its users need, and importing one of its files still loads no other. Inner rooms of
a room may use each other in both directions, as their files do not form a circle; an ``__init__`` that imported all of
its files would make one.

In a process with threads such a circle fails. Who imports a file holds the lock of that file while its room is
imported; if another thread imports the room, and that went on to the file, each would wait for the other. Python
notices, and gives one of them an error, or a module of which only a part is there.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def exports(room: str, files: Mapping[str, Sequence[str]]) -> tuple[list[str], Callable[[str], Any]]:
    """The ``__all__`` and the ``__getattr__`` of a room.

    The code of secateur itself imports from the files, which mypy can follow; the names of a room are for its tests and
    for readers.

    Args:
        room: The dotted name of the package.
        files: The names that it exports, by the file of the room that defines them; one that begins with a dot lies in
            the folder around the room.

    Source: PEP 562.
    """
    home = {name: file for file, names in files.items() for name in names}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {room!r} has no attribute {name!r}; it exports {', '.join(sorted(home))}")
        return getattr(importlib.import_module(f".{home[name]}", room), name)

    return sorted(home), load


def exports_of_files(room: str, folders: Sequence[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a room that exports all names of its files without an underscore.

    Args:
        room: The dotted name of the package.
        folders: Its ``__path__``.
    """

    @functools.cache
    def files() -> list[str]:
        from pathlib import Path  # which a client does without, and others have long loaded

        return sorted(file.stem for folder in folders for file in Path(folder).glob("[!_]*.py"))

    def load(name: str) -> Any:
        # Python asks for a file itself before it imports that.
        for file in files() if not name.startswith("_") and name not in files() else ():
            module = importlib.import_module(f"{room}.{file}")
            if name in vars(module):
                return vars(module)[name]
        raise AttributeError(f"module {room!r} has no attribute {name!r}: no file of it defines that")

    return load
