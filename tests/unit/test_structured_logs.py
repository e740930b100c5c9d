"""Log lines as JSON: one object a line, with everything that a record has."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from secateur.structured_logs import FIELDS, StructuredFormatter, write_structured_logs

log = logging.getLogger("secateur.tests")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the loggers of secateur write; they are as before when the test has ended."""
    logger = logging.getLogger("secateur")
    before, propagates = list(logger.handlers), logger.propagate
    into = io.StringIO()
    write_structured_logs("m1", into)
    yield into
    logger.handlers[:], logger.propagate = before, propagates


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_line_is_an_object(written: io.StringIO) -> None:
    log.warning("%d rows\nof %s", 5, "t")
    (line,) = lines(written)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"level": "WARNING", "logger": "secateur.tests", "member": "m1", "message": "5 rows\nof t"}


def test_fields_are_values_and_not_a_part_of_the_text(written: io.StringIO) -> None:
    log.warning("slow statement: %s", "as text", extra={FIELDS: {"elapsed_ms": 2.5, "day": date(2024, 1, 31)}})
    (line,) = lines(written)
    assert (line["message"], line["fields"]) == ("slow statement", {"elapsed_ms": 2.5, "day": "2024-01-31"})


def test_an_exception_is_a_field_of_the_same_line(written: io.StringIO) -> None:
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        log.exception("it failed")
    (line,) = lines(written)
    assert line["message"] == "it failed"
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ZeroDivisionError: integer division or modulo by zero")


def test_other_loggers_are_left_as_they_are(written: io.StringIO) -> None:
    at_root, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(at_root)
    root.addHandler(handler)
    try:
        logging.getLogger("of.user").warning("theirs")
        log.warning("ours")
    finally:
        root.removeHandler(handler)
    assert [line["message"] for line in lines(written)] == ["ours"]
    assert at_root.getvalue() == "theirs\n"


def test_calling_it_again_replaces_the_first_call(written: io.StringIO) -> None:
    again = io.StringIO()
    write_structured_logs(None, again)
    log.warning("once")
    assert lines(written) == []
    assert [(line["member"], line["message"]) for line in lines(again)] == [(None, "once")]


def test_text_that_utf_8_cannot_carry_does_not_lose_the_line() -> None:
    record = logging.makeLogRecord({"msg": "half a pair: %s", "args": ("\ud800",)})  # pytest cannot send one on
    line = json.loads(StructuredFormatter().format(record))
    assert line["message"] == "half a pair: \ud800"
