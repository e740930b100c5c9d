"""Names, texts and types as SQL writes them: quotation marks, the case of names, the parts of a type's text.

A keyword that names a field is written in quotation marks. Source: ``duckdb_keywords()`` of DuckDB 2.0, which quotes
each of them when it writes a type. The names of the functions that tell the time are here, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from string import ascii_lowercase, ascii_uppercase
from typing import Final

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)

_SUFFIX: Final = re.compile(r"(.*)\[\s*(\d*)\s*\]", re.DOTALL)
_QUOTED_NAME: Final = re.compile(r'"(?:[^"]|"")*"')
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(name: str) -> str:
    """Return a name in quotation marks, as it can always be written."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a text in single quotation marks."""
    return "'" + text.replace("'", "''") + "'"


def folded(name: str) -> str:
    """Return a name in the form in which names of a statement are compared.

    DuckDB ignores the case of the letters A to Z, and of no others: ``"É"`` and ``"é"`` are two columns, ``"ß"`` is not
    ``ss``. Tables and their declared columns are compared more strictly, by ``str.casefold``.
    """
    return name.lower() if name.isascii() else name.translate(_LOWER)


def told_apart(names: Iterable[str]) -> Iterator[str]:
    """Yield unique names of columns: of equal names all but the first get a number, as in ``a, a_1, a_2``.

    Source: DuckDB, which names the columns of files, views and data frames so.
    """
    taken: dict[str, int] = {}
    for name in names:
        key = folded(name)
        count = taken.get(key)
        if count is None:
            taken[key] = 0
            yield name
            continue
        while folded(f"{name}_{count + 1}") in taken:
            count += 1
        taken[key] = count + 1
        taken[folded(f"{name}_{count + 1}")] = 0
        yield f"{name}_{count + 1}"


def without_suffix(text: str) -> tuple[str, int | None] | None:
    """The element type and the length of ``T[3]``, the length None for ``T[]``; None for a text that is no list."""
    found = _SUFFIX.fullmatch(text)
    return None if found is None else (found[1].rstrip(), int(found[2]) if found[2] else None)


def arguments(text: str, word: str) -> list[str]:
    """Split ``WORD(a T, b U)`` into its arguments; empty when ``text`` is built otherwise."""
    if not (text.startswith(f"{word}(") and text.endswith(")")):
        return []
    parts, depth, quote, start = [], 0, "", len(word) + 1
    for index in range(start, len(text) - 1):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:-1].strip())
    return parts


def name_and_type(text: str) -> tuple[str, str]:
    """Split ``name T`` or ``"quoted name" T`` of a STRUCT, the name as written."""
    if in_quotes := _QUOTED_NAME.match(text):
        return in_quotes[0], text[in_quotes.end() :].strip()
    name, _, kind = text.partition(" ")
    return name, kind.strip()


def unquoted(name: str) -> str:
    """A name as it is, of a name as it is written."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def field_name(name: str) -> str:
    """A name of a field as DuckDB writes it: in quotation marks if it is a keyword, or more than a plain word."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return quoted(name)


KEYWORDS: Final = frozenset(
    """
    abort absolute access action add admin after aggregate all also alter always analyse analyze and anti any approx
    array as asc asof assertion assignment asymmetric at attach attribute authorization backward before begin
    between bigint binary bit boolean both by cache call called cascade cascaded case cast catalog centuries century
    chain char character characteristics check checkpoint class close cluster coalesce collate collation column
    columns columns comment comments commit committed compression concurrently configuration conflict connect
    connection constraint constraints content continue conversion copy cost create cross csv cube current cursor
    cycle data database day days deallocate dec decade decades decimal declare default defaults deferrable deferred
    definer delete delimiter delimiters depends desc describe destroy detach dictionary disable discard disconnect
    distance distinct do document domain double drop each else enable encoding encrypted end enum error escape event
    exact except exclude excluding exclusive execute exists explain export export_state extension extensions
    external extract false family fetch filter first float following for force foreign forward freeze from full
    function functions generated generated glob global grant granted group grouping grouping_id groups handler
    having header hold hour hours identity if ignore ilike immediate immutable implicit import in include including
    increment index indexes inherit inherits initially inline inner inout input insensitive insert install instead
    int integer intersect interval into invoker is isnull isolation join json key label lambda language large last
    lateral leading leakproof left level like limit listen load local location lock locked logged macro map map
    mapping match matched materialized maxvalue merge method microsecond microseconds millennia millennium
    millisecond milliseconds minute minutes minvalue mode month months move name names national natural nchar
    nearest new next no none not nothing notify notnull nowait null nullif nulls numeric object of off offset oids
    old on only operator option options or order ordinality others out outer over overlaps overlay overriding owned
    owner parallel parser partial partition partitioned passing password percent persistent pivot pivot_longer
    pivot_wider placing plans policy position positional pragma preceding precision prepare prepared preserve
    primary prior privileges procedural procedure program publication qualify quarter quarters quote range read real
    reassign recheck recursive ref references referencing refresh register reindex relative release rename
    repeatable replace replica reset resource resources respect restart restrict returning returns revoke right role
    rollback rollup row rows rule sample savepoint schema schemas scope scroll search second seconds secret secure
    security select semi sequence sequences serializable server session set setof sets share show similar similarity
    simple skip smallint snapshot some sorted source sql stable standalone start statement statistics stdin stdout
    storage stored strict strip struct struct subscription substring summarize symmetric sysid system table tables
    tablesample tablespace target temp template temporary text then ties time timestamp to trailing transaction
    transform treat trigger trim true truncate trusted try_cast try_cast tuple tuple type types unbounded
    uncommitted unencrypted union unique unknown unlisten unlogged unpack unpivot until update use user using vacuum
    valid validate validator value values varchar variable variadic varying verbose version view views virtual
    volatile week weeks when where whitespace window with within without work wrapper write xml xmlattributes
    xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable year years
    yes zone
    """.split()  # noqa: SIM905 - as a list it would be five hundred lines
)


CLOCKS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("now", "current_timestamp", "get_current_timestamp", "transaction_timestamp"), ()),
    **dict.fromkeys(("current_date", "today"), ("DATE",)),
    **dict.fromkeys(("localtimestamp", "current_localtimestamp"), ("TIMESTAMP",)),
    **dict.fromkeys(("localtime", "current_localtime"), ("TIMESTAMP", "TIME")),
    **dict.fromkeys(("current_time", "get_current_time"), ("TIMETZ",)),
}
"""The functions that tell the time at which a statement began, and the casts by which each follows from it.

A statement that reads the clock has that instant, a TIMESTAMPTZ, as its last parameter.
"""
