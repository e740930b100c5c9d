"""The templates of the pages, the line at the top of every one, and the files that belong to them."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from fastapi import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from secateur import __version__
from secateur.drawing.quantity import byte_text, duration_text
from secateur.partitioning.types.sql_text import field_name
from secateur.server.dashboard.readings import Readings

MEMBERS: Final = "SELECT * FROM secateur.members ORDER BY id"
ARRIVALS: Final = "SELECT * FROM secateur.events WHERE kind IN ('member_joined', 'member_lost') ORDER BY number"
_LATEST: Final = "SELECT * FROM secateur.history WHERE process = 'cluster' ORDER BY time DESC LIMIT 1"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """The numbers; None where nothing has been measured yet.

    Attributes:
        alive: Members that are not lost.
        members: Members, with the lost ones in whose place no other has come.
        suspected: Members that have been silent for a while.
        seconds: Those over which the six that follow were measured.
        statements_per_s: Statements that have ended, for each second, without those about the cluster itself.
        failed_per_s: Those of them that failed.
        percentiles_ms: The times at the members that 50, 95 and 99 % of the statements did not exceed.
        members_touched: The mean of the members that took part in a query.
        share_pruned: The queries that left a partition out, of those over several partitions.
        memory_used: Bytes, over all members.
        memory_limit: Bytes, over all members.
    """

    alive: int
    members: int
    suspected: int
    seconds: float | None
    statements_per_s: float | None
    failed_per_s: float | None
    percentiles_ms: tuple[float, ...] | None
    members_touched: float | None
    share_pruned: float | None
    memory_used: int
    memory_limit: int


def cluster_line_now(readings: Readings) -> ClusterLine:
    """The line as it is now. It blocks while the cluster is asked.

    Raises:
        Error: The cluster did not answer.
    """
    latest = readings.rows(_LATEST)
    lost = missing_members(readings.rows(ARRIVALS))
    return line_from(readings.rows(MEMBERS), len(lost), latest[0] if latest else None)


def line_from(members: Sequence[Row], missing: int, latest: Row | None) -> ClusterLine:
    """The line.

    Args:
        members: The rows of ``secateur.members``.
        missing: Lost members in whose place no other has come.
        latest: The newest row of the cluster in ``secateur.history``; None for none.
    """
    alive = [row for row in members if row["state"] != "lost"]
    ended = {} if latest is None else latest
    over_several = ended.get("pruned", 0) + ended.get("unpruned", 0)
    return ClusterLine(
        alive=len(alive),
        members=len(alive) + missing,
        suspected=sum(row["state"] == "suspect" for row in members),
        seconds=ended.get("seconds"),
        statements_per_s=ended["statements"] / ended["seconds"] if ended else None,
        failed_per_s=ended["failed"] / ended["seconds"] if ended else None,
        percentiles_ms=(ended["p50_ms"], ended["p95_ms"], ended["p99_ms"]) if ended.get("statements") else None,
        members_touched=ended["members_touched"] / ended["queries"] if ended.get("queries") else None,
        share_pruned=ended["pruned"] / over_several if over_several else None,
        memory_used=sum(row["memory_used"] for row in alive),
        memory_limit=sum(row["memory_limit"] or 0 for row in alive),
    )


def missing_members(arrivals: Sequence[Row]) -> list[Row]:
    """The events of lost members in whose place no other has come since: one that joins takes the place of the first.

    Args:
        arrivals: The events ``member_joined`` and ``member_lost``, the oldest first.
    """
    missing: list[Row] = []
    for event in arrivals:
        if event["kind"] == "member_lost":
            missing.append(event)
        elif missing:
            missing.pop(0)
    return missing


_HERE: Final = Path(__file__).parent
_NOTHING: Final = "-"
_KINDS: Final = {".svg": "image/svg+xml", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

STATIC_FILES: Final[Mapping[str, tuple[str, bytes]]] = MappingProxyType(
    {
        path.name: (_KINDS[path.suffix], path.read_bytes())
        for path in sorted((_HERE / "static").iterdir())
        if path.suffix in _KINDS
    }
)
"""Type and content of the style sheet, the scripts and the icon."""
_PAGE_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
            " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
    }
)
"""A page runs the scripts of this server and no other; nothing in it is inline, and nothing comes from outside."""
_KEPT_MAX: Final = 32
_LINE: Final = "<!-- the line of the cluster -->"
"""Its place in a kept text. No text of a user looks like it: a page escapes those."""

_Key = tuple[str, tuple[tuple[str, str], ...]]


def html_answer(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A page, or a part of one."""
    return Response(
        text, status_code=status, media_type="text/html; charset=utf-8", headers={**_PAGE_HEADERS, **(headers or {})}
    )


def rendered(name: str, values: Mapping[str, Any]) -> str:
    """A template as text.

    Args:
        name: Its file.
        values: The names that it uses; each has to be there.
    """
    return _environment.get_template(name).render(values)


_WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "count": lambda value: f"{value:,.0f}",
        "decimal": lambda value: f"{value:,.2f}".removesuffix("00").removesuffix("."),
        "rate": lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.1f}",
        "bytes": lambda value: byte_text(int(value)),
        "ms": lambda value: duration_text(value / 1e3),
        "percent": lambda value: "< 0.1 %" if 0 < value < 0.001 else f"{100 * value:.1f} %",
        "time": lambda value: value.strftime("%Y-%m-%d %H:%M:%S"),
        "text": lambda value: ", ".join(value) or _NOTHING if isinstance(value, list) else value,
        "name": field_name,
    }
)
"""The filters of the templates; each writes None as a dash."""


def _or_dash(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: _NOTHING if value is None else write(value)


class _RowEnvironment(Environment):
    """Looks the names of a template up in rows, which are dictionaries, before their methods: most names are columns.

    A page of a hundred rows takes a quarter less time than with the exception that each miss of ``getattr`` raises.
    """

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


def _made() -> Environment:
    made = _RowEnvironment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: _or_dash(write) for name, write in _WRITERS.items()}
    digest = hashlib.sha256(b"".join(content for _, content in STATIC_FILES.values())).hexdigest()[:12]
    made.globals |= {"static_version": digest, "version": __version__}
    return made


_environment: Final = _made()


class PageTexts:
    """Writes pages, each again only when what it shows has changed, and keeps the newest. Thread-safe.

    An open page is asked for every 1.4 seconds, and most of the time nothing in it is new but the line at its top:
    writing a page of 271 partitions takes ten milliseconds, comparing what it shows with what it has shown a tenth of
    one.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, tuple[Mapping[str, Any], str]] = OrderedDict()
        self._lock = threading.Lock()

    def text(self, template: str, query: Mapping[str, str], values: Mapping[str, Any], line: ClusterLine) -> str:
        """A page.

        Args:
            template: Its template.
            query: What it was asked for.
            values: What it shows, and all that the text depends on.
            line: The line of the cluster.
        """
        key = template, tuple(sorted(query.items()))
        with self._lock:
            before = self._kept.get(key)
        if before is not None and before[0] == values:
            text = before[1]
        else:
            text = rendered(template, {**values, "line": Markup(_LINE)})
            with self._lock:
                self._kept[key] = values, text
                self._kept.move_to_end(key)
                while len(self._kept) > _KEPT_MAX:
                    self._kept.popitem(last=False)
        return text.replace(_LINE, rendered("line.html", {"line": line}), 1)
