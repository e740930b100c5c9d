"""The planner: turns a SQL text into a statement."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import structs

from secateur.errors import Error, LimitExceededError, NotSupportedError
from secateur.planner.binding.catalog_view import ANYBODY, CatalogView, PlanningCatalog, PlanSettings, Viewer
from secateur.planner.cached_plan import Params, arrange, is_estimated, typed_parameters, with_values
from secateur.planner.cost_model import CostModel
from secateur.planner.dml.composed import Composer
from secateur.planner.dml.literal_insert import LITERAL_ROWS_CHARS_MIN, take_literal_rows, with_literal_rows
from secateur.planner.statement_planner import StatementPlanner
from secateur.planner.text.hoisted_lists import HOISTED_CHARS_MIN, HoistedText, hoist_lists, readings_of
from secateur.planner.text.named_types import named_types_in
from secateur.planner.text.parameters import Parameters, read_parameters
from secateur.planner.text.positions import syntax_error
from secateur.planner.text.token_cursor import TextSpan
from secateur.planner.text.tokens import Token, tokenize
from secateur.protocol.kept_plans import KeptPlans
from secateur.protocol.statements import Statement

_STATEMENT_CHARS_MAX: Final = 4_000_000
_CACHED_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class _CacheKey:
    """Everything that a plan depends on, beside the types of parameters."""

    text: str | HoistedText
    is_bound: bool
    catalog_version: int
    settings: PlanSettings
    scope: str


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A plan, and the version of the statistics that it was made with; None when they had no say in it."""

    planned: Statement
    statistics_version: int | None


class Planner:
    """Turns texts into statements, and caches their plans.

    Thread-safe: several statements may be planned at once.

    Args:
        cached_max: How many plans to keep.
        cost_model: The costs by which plans are chosen, unless a session has set a number of it.
    """

    def __init__(self, cached_max: int = _CACHED_MAX, cost_model: CostModel | None = None) -> None:
        self._cost_model = cost_model or CostModel()
        self._cached_max = cached_max
        self._cache: KeptPlans[_CacheKey, _Remembered] = KeptPlans(cached_max)
        self._styles: OrderedDict[tuple[str | HoistedText, str], Parameters] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(
        self,
        sql: str,
        params: Params,
        view: CatalogView,
        settings: Mapping[str, Any] | None = None,
        *,
        viewer: Viewer = ANYBODY,
        anew: bool = False,
    ) -> Statement:
        """Plan one statement.

        Args:
            sql: The text of exactly one statement, with or without a semicolon.
            params: Its parameters: a sequence for ``?`` and ``$1``, a mapping for ``$name``. A query may be planned
                without any, to be explained or bound later.
            view: The tables.
            settings: Those of the session; a plan depends on its
                :class:`~secateur.planner.binding.catalog_view.PlanSettings`.
            viewer: Whom it is planned for.
            anew: Whether to plan with the statistics of now, even where an earlier plan would do: its estimates may be
                old.

        Returns:
            The statement; INSERT ... VALUES comes evaluated.
            Cost: a few milliseconds for a new text, some 10 microseconds for one with a plan in the cache.

        Raises:
            SqlSyntaxError: The text does not parse; message and details have the position.
            UnknownTableError, UnknownColumnError: An unknown name, with suggestions.
            ParameterError: The parameters are not those of the statement.
            SchemeError: A CREATE TABLE with an invalid scheme.
            NotSupportedError: A valid statement that is not supported.
            LimitExceededError: The text is too long.
        """
        catalog = PlanningCatalog(view, PlanSettings.of(settings, self._cost_model), viewer)
        known = self._styles.get((sql, viewer.scope))
        if known is not None and not anew:
            cached = self._cached(sql, known, params, catalog)
            if cached is not None:
                return cached
        if len(sql) > _STATEMENT_CHARS_MAX:
            raise LimitExceededError(
                f"the statement has {len(sql):,} characters, at most {_STATEMENT_CHARS_MAX:,} are allowed:"
                " pass values as parameters, or load a table"
            )
        taken = take_literal_rows(sql) if len(sql) >= LITERAL_ROWS_CHARS_MIN and not params else None
        if taken is not None:
            # If planning fails, the error has its place in the user's text, or DuckDB can convert a value.
            with suppress(Error):
                inserted = with_literal_rows(self._prepare_new(taken.text, taken.text, {}, (), catalog), taken)
                if inserted is not None:
                    return inserted
        hoisted = hoist_lists(sql) if len(sql) >= HOISTED_CHARS_MIN else None
        if hoisted is not None:
            text, lists = hoisted
            known = None if anew else self._styles.get((text, viewer.scope))
            for reading in readings_of(lists):
                # With another reading, or as written, it is valid, or has its error at a place in the user's text.
                with suppress(Error):
                    own = None if known is None else replace(known, lists=reading)
                    cached = None if own is None else self._cached(text, own, params, catalog)
                    hidden = dict(zip(text.offsets, reading, strict=True))
                    return cached or self._prepare_new(text, text.text, hidden, params, catalog)
        return self._prepare_new(sql, sql, {}, params, catalog)

    def _cached(
        self, text: str | HoistedText, parameters: Parameters, params: Params, catalog: PlanningCatalog
    ) -> Statement | None:
        if parameters.claims:
            own = catalog.viewer.values_of(claim for claim, _ in parameters.claims)
            parameters = replace(parameters, claims=tuple(own.items()))
        values = arrange(parameters, params)
        cached = self._cache.get(_key(text, values, catalog), values or ())
        if cached is None or cached.statistics_version not in (None, catalog.view.statistics_snapshot.version):
            return None
        return with_values(cached.planned, values, parameters.hidden, catalog.view.version)

    def _prepare_new(
        self,
        key: str | HoistedText,
        sql: str,
        hidden: Mapping[int, list[Any]],
        params: Params,
        catalog: PlanningCatalog,
    ) -> Statement:
        tokens, parameters = read_parameters(sql, _one_statement(sql, tokenize(sql)), hidden)
        parameters.refuse_gaps(sql)
        claims = catalog.claims_read(sql, tokens)
        if claims:
            parameters = parameters.with_claims(catalog.viewer.values_of(claims))
        planned = self._planned(sql, tokens, parameters, params, catalog)
        if not planned.is_cached:
            return planned
        values = arrange(parameters, params)
        remembered = _Remembered(planned, catalog.view.statistics_snapshot.version if is_estimated(planned) else None)
        self._cache.put(_key(key, values, catalog), values or (), remembered, typed_parameters(planned))
        with self._lock:
            style = key, catalog.viewer.scope
            self._styles[style] = replace(parameters, lists=())
            self._styles.move_to_end(style)
            while len(self._styles) > self._cached_max:
                self._styles.popitem(last=False)
        return with_values(planned, values, parameters.hidden, catalog.view.version)

    def _planned(
        self, sql: str, tokens: list[Token], parameters: Parameters, params: Params, catalog: PlanningCatalog
    ) -> Statement:
        """Plan a statement, in whose text the names of types are replaced by what they name."""
        places = named_types_in(tokens, catalog.view.types)
        planner = StatementPlanner(catalog, self._cost_model)
        if not places:
            return planner.plan(sql, tokens, parameters, params)
        if parameters.lists:
            raise NotSupportedError("lists are not taken out of a text with names of types")
        composer = Composer(sql, parameters)
        position = 0
        for place in places:
            composer.say(TextSpan(position, place.start))
            if place.literal is None:
                composer.say(str(place.named.type))
            else:
                composer.say("CAST(", TextSpan(*place.literal), f" AS {place.named.type})")
            position = place.end
        composed = composer.say(TextSpan(position, tokens[-1].end + 1)).finish()
        planned: Statement = composed.plan(
            lambda text, own_tokens, own: planner.plan(text, own_tokens, replace(parameters, spans=own.spans), params)
        )
        type_ids = tuple(place.named.type_id for place in places)
        typed: Statement = planned.with_queries(lambda query: _with_types(query, type_ids))
        return typed


def _with_types(select: Any, type_ids: tuple[int, ...]) -> Any:
    """A query that is not run with what names of types meant before."""
    views = tuple(sorted({*select.plan.views, *type_ids}))
    plan = structs.replace(select.plan, views=views, empty=None, plan_id="").named()
    return replace(select, plan=plan)


def _key(text: str | HoistedText, values: tuple[Any, ...] | None, catalog: PlanningCatalog) -> _CacheKey:
    return _CacheKey(text, values is not None, catalog.view.version, catalog.settings, catalog.viewer.scope)


def _one_statement(sql: str, tokens: list[Token]) -> list[Token]:
    """The tokens without semicolons at the end.

    Raises:
        SqlSyntaxError: The text is empty, or has several statements.
    """
    while tokens and tokens[-1].word == ";":
        tokens.pop()
    if not tokens:
        raise syntax_error("the statement is empty", sql, 0)
    for position, token in enumerate(tokens):
        if token.text == ";" and token.word:
            behind = tokens[position + 1]
            raise syntax_error(
                "one statement at a time: a second one begins here", sql, behind.start, behind.end - behind.start + 1
            )
    return tokens
