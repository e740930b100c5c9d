"""Evaluation at planning time: only constants and functions that are bounded in time, memory and result size.

Planning evaluates constants, to find the partitions that they select, and the answer of a statement over no rows. One
planner serves all clients, so everything that it evaluates is bounded in time, memory and result size, and calls only
functions whose results are no larger than their arguments. Everything else is unknown to the planner; a member
evaluates it while the statement runs, where it can be cancelled.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa

from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.duckdb.kernel import DuckDBKernel, default_kernel
from secateur.engine.kernels.fragment import Fragment, run_with
from secateur.errors import JobCancelledError, LimitExceededError
from secateur.planner.binding.query import Query
from secateur.planner.text.syntax import SyntaxNode, nodes_of
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import relations_in

EVALUATION_S: Final = 0.25
"""A constant takes microseconds. The bound must also hold on a machine that is overloaded many times over, because a
statement that exceeds it loses its pruning."""
_SHORT_CHARS_MAX: Final = 4096
"""No bounded function takes longer than the square of its arguments: ``levenshtein`` of two halves of such a text takes
some milliseconds.
"""
_MEMORY_BYTES_MAX: Final = 64 << 20
_RESULT_BYTES_MAX: Final = 1 << 20
VALUE_BYTES_MAX: Final = 64 << 20
"""The largest value that a constant may make while DuckDB binds it: binding evaluates constants, and nothing interrupts
it in the middle of one.
"""
_SIZED: Final = re.compile(
    r"\b(?:repeat|[lr]pad|(?:list|array)_resize|range|generate_series|printf|format|to_base|bar|bitstring)\b",
    re.IGNORECASE,
)
"""The functions that make a value as large as an argument demands; see :func:`_size_of`."""

_FIXED_WIDTH: Final = re.compile(
    r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|DECIMAL|BOOLEAN|DATE|TIME(?:STAMP)?(?:_N?S|_MS|TZ_NS)?(?:"
    r" WITH TIME ZONE)?|INTERVAL|UUID|BIGNUM|BIT"
)
_LINEAR_FUNCTIONS: Final = """
+ - || add subtract concat concat_ws greatest least if ifnull nullif coalesce row list_value list_pack alias
path_join constant_or_null hive_partition_component lower upper lcase ucase trim ltrim rtrim left right substr
substring reverse strip_accents split_part chr hex unhex to_hex from_hex bin unbin to_binary from_binary base64
to_base64 from_base64 encode decode md5 sha1 sha256 strftime dayname monthname typeof array_extract list_extract
list_element struct_pack map struct_extract date_add timezone date_part datepart days_in_month translate
nfc_normalize url_encode url_decode regexp_extract regexp_extract_all regexp_escape regexp_split_to_array
string_split string_split_regex str_split str_split_regex string_to_array split left_grapheme right_grapheme
substring_grapheme overlay parse_dirname parse_dirpath parse_filename parse_path format_bytes formatreadablesize
formatreadabledecimalsize fdiv fmod array_slice list_slice list_sort list_reverse_sort list_distinct list_concat
list_cat array_concat array_cat element_at array_to_string json_extract json_extract_string json_value ->>
"""
_LINEAR: Final = frozenset(_LINEAR_FUNCTIONS.split())
"""Functions that may return text, lists and the like, never much larger than their arguments together.

Functions that sleep return nothing of fixed width, so they are not listed either.
"""
_GROWING: Final = frozenset({"bitstring"})
"""Functions whose results are as large as a number demands, although their type looks like one of fixed width."""

_CALL: Final = re.compile(r'(["\w]+)\s*\(')
_OTHER_WORDS: Final = """
cast try_cast case when then else and or not in is between like ilike extract position overlay interval values
row array struct decimal numeric varchar char union date time timestamp end distinct
"""
_WORDS: Final = frozenset(_OTHER_WORDS.split())
"""Words in front of parentheses that call nothing."""


def evaluate(
    fragment: Fragment, relations: Mapping[str, pa.Table], params: Sequence[Any] = (), *, ends_soon: bool = False
) -> pa.Table | None:
    """Evaluate something small at planning time.

    Args:
        fragment: Calls only :func:`bounded_functions`.
        relations: The tables that it reads.
        params: Its parameters.
        ends_soon: Whether it makes no rows on its own (:func:`is_small`). If its text is short no clock is needed
            then: a clock is a thread, which costs more than a constant.

    Returns:
        Its rows; None when it took longer than ``EVALUATION_S``, or more memory than 64 MB: then it is unknown at
        planning time.

    Raises:
        Error: It fails; or planning was cancelled.
    """
    if ends_soon and len(fragment.sql) <= _SHORT_CHARS_MAX:
        try:
            return run_with(fragment, relations, params, duckdb=_kernel)[0]
        except LimitExceededError:
            return None
    limit = Cancellation()
    timer = threading.Timer(EVALUATION_S, limit.cancel)
    timer.daemon = True
    timer.start()
    try:
        return run_with(fragment, relations, params, cancellation=limit, duckdb=_kernel)[0]
    except JobCancelledError:
        if not limit.cancelled:
            raise
        return None
    except LimitExceededError:
        return None
    finally:
        timer.cancel()


def is_small(root: rel.AnyRelation) -> bool:
    """Whether a statement without tables certainly has no more rows than its text contains.

    It must not make rows by a table function, a recursion, the elements of lists, or a join of several with several.
    """
    return not any(map(_makes_rows, relations_in(root)))


def _makes_rows(relation: rel.AnyRelation) -> bool:
    match relation:
        case rel.LogicalScan(table=None) | rel.LogicalRecursiveWith() | rel.LogicalUnnestRows():
            return True
        case rel.LogicalJoin() | rel.LogicalConditionJoin() | rel.LogicalCross() | rel.LogicalPositional():
            return not any(map(_is_one_row, relation.children))
        case _:
            return False


def _is_one_row(relation: rel.AnyRelation) -> bool:
    """Whether a relation has at most one row."""
    while isinstance(relation, rel.LogicalFilter | rel.LogicalProject | rel.LogicalSort | rel.LogicalLimit):
        (relation,) = relation.children
    match relation:
        case rel.LogicalNothing() | rel.LogicalNoRows() | rel.LogicalAggregate(groups=()):
            return True
        case rel.LogicalCross():
            return all(map(_is_one_row, relation.children))
        case _:
            return False


def calls_only_bounded(text: str) -> bool:
    """Whether an expression that is only text makes no large value: anything that may be another call counts as one."""
    return all(name.lower() in _WORDS or name.lower() in bounded_functions() for name in _CALL.findall(text))


def refuse_large_constants(query: Query) -> None:
    """Refuse a statement whose constants DuckDB would make too large a value of while it binds them.

    Raises:
        LimitExceededError: A call such as ``repeat('x', 3000000000)``.
    """
    if _SIZED.search(query.sql) is None:
        return
    root = query.syntax.node
    in_from = [node["function"] for node in nodes_of(root) if node.get("type") == "TABLE_FUNCTION"]
    for call in nodes_of(root):
        size = None if any(call is table for table in in_from) else _size_of(call)
        if size is None or size <= VALUE_BYTES_MAX or call.get("class") != "FUNCTION":
            continue
        if not any(node.get("class") == "COLUMN_REF" for node in nodes_of(call)):
            raise LimitExceededError(
                f"the constant {call['function_name'].lower()}(...) would have {size:,} bytes, and planning evaluates"
                f" constants of at most {VALUE_BYTES_MAX:,} bytes: pass its size as a parameter, so that a member"
                " evaluates it",
                limit="constant",
            )


def _size_of(node: SyntaxNode) -> int | None:
    """Estimate the bytes of a constant that a function makes as large as its arguments demand; None where unknown."""
    match node:
        case {"class": "CONSTANT", "literal": {"kind": "STRING", "text": str(text)}}:
            return len(text)
        case {"class": "CONSTANT"}:
            return 8
        case {"class": "CAST", "child": child}:
            return _size_of(child)
        case {"class": "FUNCTION", "function_name": str(name), "arguments": [*given]}:
            arguments = [one["expression"] for one in given]
        case _:
            return None
    match name.lower(), arguments:
        case "repeat", [value, count]:
            size, times = _size_of(value), _number_of(count)
            return None if times is None else times * (1 if size is None else size)
        case ("lpad" | "rpad", [_, length, _]) | ("bitstring", [_, length]):
            return _number_of(length)
        case ("to_base", [_, _, length]) | ("bar", [_, _, _, length]):
            return _number_of(length)
        case "list_resize" | "array_resize", [_, length, *_]:
            number = _number_of(length)
            return None if number is None else 8 * number
        case "range" | "generate_series", [*bounds] if bounds:
            numbers = [_number_of(bound) for bound in bounds[:3]]
            known = [number for number in numbers if number is not None]
            if len(known) < len(numbers):
                return None
            start, stop, step = (0, *known, 1) if len(known) == 1 else (*known, 1)[:3]
            return 8 * max((stop - start) // (step or 1), 0)
        case "printf" | "format", [{"literal": {"text": str(text)}}, *_]:
            return max([0, *(int(digits) for digits in re.findall(r"[0-9]{1,18}", text))])
        case _:
            return None


def _number_of(node: SyntaxNode) -> int | None:
    """The value of a size that is written as a number, or computed of such."""
    match node:
        case {"class": "CONSTANT", "literal": {"kind": "INTEGER" | "NUMERIC", "text": str(text)}}:
            try:
                return int(float(text))
            except (ValueError, OverflowError):
                return None
        case {"class": "CAST", "child": child}:
            return _number_of(child)
        case {"class": "FUNCTION", "function_name": str(name), "arguments": [{"expression": one}]}:
            if name.lower() in ("length", "len", "strlen"):
                return _size_of(one)
            number = _number_of(one)
            return -number if name == "-" and number is not None else None
        case {"class": "FUNCTION", "function_name": str(name), "arguments": [{"expression": one}, {"expression": two}]}:
            left, right = _number_of(one), _number_of(two)
            if left is None or right is None:
                return None
            match name:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "^" | "**" if 0 <= right < 64:
                    return int(left**right)
                case _:
                    return None
        case _:
            return None


@cache
def _kernel() -> DuckDBKernel:
    """A kernel for this alone: its memory is not that of the members that may live in this process."""
    return DuckDBKernel(memory_limit_bytes=_MEMORY_BYTES_MAX, threads=1, result_bytes_max=_RESULT_BYTES_MAX)


@cache
def bounded_functions() -> frozenset[str]:
    """The functions whose values are no larger than their arguments, in lower case."""
    rows = default_kernel().run(
        "SELECT lower(function_name) AS name, return_type FROM duckdb_functions() WHERE function_type = 'scalar'", {}
    )
    names, types = (column.to_pylist() for column in rows.columns)
    growing = {
        name
        for name, kind in zip(names, types, strict=True)
        if kind is None or not _FIXED_WIDTH.fullmatch(kind.partition("(")[0])
    }
    return (frozenset(names) - growing - _GROWING) | _LINEAR
