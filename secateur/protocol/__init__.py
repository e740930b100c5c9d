"""The protocol: operations, requests and replies between clients, controller and members, and their encoding.

The room exports every public name of its files: each is named once, where it is defined.
"""

from __future__ import annotations

from secateur.exports import exports_of_files

__getattr__ = exports_of_files(__name__, __path__)
