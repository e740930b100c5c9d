"""JSON that is nested as deeply as a statement: DuckDB's tree of one."""

from __future__ import annotations

import json
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

from secateur.planner.segmented_stack import on_segmented_stack


class _SegmentedDecoder(json.JSONDecoder):
    """Reads in Python, which can go on in another thread where the reader in C cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_object = on_segmented_stack(JSONObject)
        self.parse_array = on_segmented_stack(JSONArray)
        self.scan_once = py_make_scanner(self)


def read_json(text: str) -> Any:
    """As :func:`json.loads`; a text that is nested too deeply for it is read in a slower way.

    Raises:
        RecursionError: It is nested too deeply for that one as well.
    """
    try:
        return json.loads(text)
    except RecursionError:
        pass
    return _SegmentedDecoder().decode(text)
