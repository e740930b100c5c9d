"""The texts of pages are kept, and never old."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from secateur.server.dashboard import ClusterLine, PageTexts

FRAME: Mapping[str, Any] = {"pages": [("/events", "Events")], "path": "/events", "title": "Events", "trouble": ""}
EVENT = {"time": None, "kind": "member_lost", "member": "m2", "detail": "<!-- the line of the cluster -->"}


def line(alive: int) -> ClusterLine:
    return ClusterLine(alive, 3, 0, 10.0, 100.0, 0.0, (1.0, 2.0, 3.0), 1.0, 0.5, 1 << 20, 1 << 30)


def shown(pages: PageTexts, rows: list[dict[str, Any]], alive: int, **query: str) -> str:
    values = {**FRAME, "rows": rows, "kind": None, "kinds": []}
    return pages.text("events.html", query, values, line(alive))


def test_the_line_is_new_in_a_page_that_is_kept() -> None:
    pages = PageTexts()
    first, second = shown(pages, [EVENT], 3), shown(pages, [dict(EVENT)], 2)
    assert "3 of 3" in first
    assert "2 of 3" in second
    assert first.replace("3 of 3", "2 of 3").split("</section>")[1] == second.split("</section>")[1]
    assert second == shown(PageTexts(), [EVENT], 2), "as if it had not been kept"


def test_other_rows_and_other_queries_are_other_pages() -> None:
    pages = PageTexts()
    assert "m2" in shown(pages, [EVENT], 3)
    assert "Nothing has happened." in shown(pages, [], 3)
    assert "m7" in shown(pages, [EVENT | {"member": "m7"}], 3, kind="member_lost")
    assert "m2" in shown(pages, [EVENT], 3)


def test_a_text_of_a_user_is_not_taken_for_the_place_of_the_line() -> None:
    text = shown(PageTexts(), [EVENT], 3)
    assert "&lt;!-- the line of the cluster --&gt;" in text
    assert text.count("Members alive") == 1
