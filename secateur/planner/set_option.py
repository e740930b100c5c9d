"""SET and SHOW: the settings of a session."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from secateur.errors import AuthenticationError, ProgrammingError, UnknownTableError
from secateur.partitioning.pruning.select_partitions import COMBINATIONS_PER_PARTITION
from secateur.planner.binding.catalog_view import similar_names, split_rules
from secateur.planner.cost_model import COST_SETTINGS, CostModel
from secateur.planner.statement import SetGlobalPruning
from secateur.planner.steps.join_keys import RULE as JOIN_KEYS_FIRST
from secateur.planner.steps.materialize import RULE as MATERIALIZE_SUBQUERY
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token
from secateur.protocol.hello import Pruning
from secateur.protocol.statements import SetOption, SetPruning, SetTimeout, Setting, ShowSettings
from secateur.tunable import Tunable

_DISABLED_RULES: Final = "disabled_rules"
_COMBINATIONS: Final = "combinations_per_partition"
_COMBINATIONS_MAX: Final = 1_000_000
_TIMEOUT: Final = "statement_timeout"
_PRUNING: Final = "pruning"
_DEFAULT: Final = "default"
_TIMEOUT_MAX_MS: Final = 1 << 53
_TIME: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) *(ms|s|min|h)")
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000}
_OPTIONS: Final = {
    _PRUNING: tuple(Pruning),
    _DISABLED_RULES: (MATERIALIZE_SUBQUERY, JOIN_KEYS_FIRST),
    _COMBINATIONS: ("a whole number",),
    _TIMEOUT: ("a time such as '5s'", "0"),
    **dict.fromkeys(COST_SETTINGS, ("a number",)),
}

_SETTINGS: Final = (
    Setting(
        _PRUNING,
        Pruning.ON,
        "whether statements run only on the partitions that they need; verify also runs them on all rows and compares",
    ),
    Setting(_DISABLED_RULES, "", "names of the rewrite rules that are switched off, separated by commas"),
    Setting(
        _COMBINATIONS,
        str(COMBINATIONS_PER_PARTITION),
        "how many combinations of key values are hashed at most, per partition of the table",
    ),
    Setting(_TIMEOUT, "0", "time after which a statement is cancelled; 0 for never"),
)
"""Every setting that there is, for SHOW, but for those of the cost model."""


def read_set(cursor: TokenCursor) -> SetOption | SetPruning | SetTimeout | SetGlobalPruning:
    """Read a SET statement.

    ``SET pruning = on | off | verify``, ``SET disabled_rules = 'name, ...'``, ``SET combinations_per_partition = n``,
    ``SET statement_timeout = '5s'``, or a number of the cost model by its name.

    ``SET GLOBAL pruning = ...`` is of the cluster; no other setting has a value of the cluster that can be changed.
    ``SET SESSION`` is SET.

    The value may be quoted, and ``TO`` may be used instead of ``=``. ``SET name = default`` takes back what this
    session has set.

    Raises:
        ProgrammingError: No such setting, or an invalid value.
    """
    cursor.expect("SET")
    if cursor.at("VARIABLE"):
        raise cursor.unsupported("SET VARIABLE", "pass values as parameters")
    is_global = cursor.accept("GLOBAL")
    if not is_global:
        cursor.accept("SESSION")
    offset = cursor.offset
    name = _read_name(cursor)
    values = _OPTIONS[name]
    if is_global and name != _PRUNING:
        raise cursor.error(
            ProgrammingError,
            f"{name} is a setting of each session: SET {name} = value; {_PRUNING} can be set for the cluster",
            offset,
            len(name),
        )
    if not cursor.accept("=") and not cursor.accept("TO"):
        raise cursor.expected("'='")
    if cursor.at_end:
        raise cursor.expected(" | ".join(values))
    offset = cursor.offset
    token = cursor.take()
    value = token.text.lower()
    if value == _DEFAULT and not is_global:
        cursor.expect_end()
        return _default_of(name)
    if name in COST_SETTINGS:
        return _read_cost(cursor, COST_SETTINGS[name], token, offset)
    if name == _PRUNING and value not in values:
        message = f"{name} is {', '.join(values[:-1])} or {values[-1]}"
        raise cursor.error(ProgrammingError, message, offset, len(value))
    cursor.expect_end()
    if name == _DISABLED_RULES:
        return SetOption(_DISABLED_RULES, ", ".join(_checked_rules(cursor, token, offset)))
    if name == _COMBINATIONS:
        if not value.isdecimal() or not 1 <= int(value) <= _COMBINATIONS_MAX:
            raise cursor.error(
                ProgrammingError,
                f"{_COMBINATIONS} is a whole number from 1 to {_COMBINATIONS_MAX:,}",
                offset,
                len(token.text),
            )
        return SetOption(_COMBINATIONS, value)
    if name == _TIMEOUT:
        return SetTimeout(value, read_milliseconds(cursor, token, offset))
    return SetGlobalPruning(Pruning(value)) if is_global else SetPruning(Pruning(value))


def read_reset(cursor: TokenCursor) -> SetOption | SetPruning | SetTimeout:
    """Read ``RESET name``, which is ``SET name = default``.

    Raises:
        ProgrammingError: No such setting.
    """
    cursor.expect("RESET")
    cursor.accept("SESSION")
    name = _read_name(cursor)
    cursor.expect_end()
    return _default_of(name)


def _read_name(cursor: TokenCursor) -> str:
    """The name of a setting, in lower case.

    Raises:
        ProgrammingError: There is none.
    """
    offset = cursor.offset
    name = cursor.name("the name of a setting")
    if name.lower() not in _OPTIONS:
        hint = similar_names(name, list(_OPTIONS), "SHOW ALL lists those that there are")
        if name.lower() in ("time", "timezone"):
            hint = "the time zone is UTC: write ts AT TIME ZONE 'Europe/Berlin' where another one is wanted"
        raise cursor.error(ProgrammingError, f"there is no setting {name!r}; {hint}", offset, len(name))
    return name.lower()


def _default_of(name: str) -> SetOption | SetPruning | SetTimeout:
    if name == _PRUNING:
        return SetPruning(None)
    return SetTimeout("0", 0) if name == _TIMEOUT else SetOption(name, "")


def is_show_settings(cursor: TokenCursor, find: Callable[[str], object]) -> bool:
    """Whether SHOW is of a setting, or of all settings: a table or view of that name takes precedence.

    Args:
        cursor: At SHOW.
        find: Raises UnknownTableError for names of no table or view, and AuthenticationError for those that the client
            may not read.
    """
    token = cursor.peek(1)
    if token is None or cursor.peek(2) is not None:
        return False
    if token.text.lower() not in _OPTIONS:
        return cursor.at("SHOW", "ALL")
    with suppress(UnknownTableError, AuthenticationError):
        find(token.text)
        return False
    return True


def read_show_settings(cursor: TokenCursor, cost_model: CostModel) -> ShowSettings:
    """``SHOW name`` or ``SHOW ALL``, for which :func:`is_show_settings` holds."""
    cursor.expect("SHOW")
    name = cursor.take().text.lower()
    cursor.expect_end()
    costs = (Setting(one.name, str(getattr(cost_model, one.name)), one.effect) for one in COST_SETTINGS.values())
    settings = (*_SETTINGS, *costs)
    chosen = tuple(setting for setting in settings if setting.name == name)
    return ShowSettings(chosen or settings, is_single=bool(chosen))


def _read_cost(cursor: TokenCursor, known: Tunable, token: Token, offset: int) -> SetOption:
    """A number of the cost model, which may have a sign."""
    sign = ""
    if token.text in ("-", "+") and not cursor.at_end:
        sign, token = token.text, cursor.take()
    cursor.expect_end()
    text = sign + token.text.lower()
    if known.read(text) is None:
        raise cursor.error(
            ProgrammingError,
            f"{known.name} is {known.expected}: {known.effect}",
            offset,
            token.end + 1 - offset,
        )
    return SetOption(known.name, text)


def read_milliseconds(cursor: TokenCursor, token: Token, offset: int) -> int:
    """A time as a number of milliseconds, at least 1; 0 for none."""
    text = token.text.strip().lower()
    found = _TIME.fullmatch(text)
    milliseconds = 0 if found is None or not float(found[1]) else max(1, round(float(found[1]) * _UNIT_MS[found[2]]))
    if (found is None and text != "0") or milliseconds > _TIMEOUT_MAX_MS:
        message = f"{_TIMEOUT} is a time with its unit (ms, s, min or h), such as '5s' or '500ms', or 0 for none"
        raise cursor.error(ProgrammingError, message, offset, token.end - token.start + 1)
    return milliseconds


def _checked_rules(cursor: TokenCursor, token: Token, offset: int) -> tuple[str, ...]:
    known = _OPTIONS[_DISABLED_RULES]
    names = split_rules(token.text)
    for name in names:
        if name not in known:
            raise cursor.error(
                ProgrammingError,
                f"there is no rule {name!r}; {similar_names(name, known)}",
                offset,
                token.end - token.start + 1,
            )
    return names
