"""Statements of SQLAlchemy as text: PostgreSQL's, where DuckDB's dialect does not differ."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import base as postgresql
from sqlalchemy.exc import CompileError
from sqlalchemy.sql import compiler

_ONLY_RESERVED_HERE: Final = frozenset(
    [
        "anti",
        "asof",
        "at",
        "by",
        "collation",
        "columns",
        "concurrently",
        "describe",
        "generated",
        "glob",
        "lambda",
        "lateral",
        "map",
        "pivot",
        "pivot_longer",
        "pivot_wider",
        "positional",
        "qualify",
        "semi",
        "show",
        "struct",
        "summarize",
        "tablesample",
        "try_cast",
        "tuple",
        "unpack",
        "unpivot",
    ]
)
"""The words that DuckDB reserves and PostgreSQL does not."""


class SecateurIdentifierPreparer(compiler.IdentifierPreparer):
    """Quotes what DuckDB reserves."""

    reserved_words = postgresql.RESERVED_WORDS | _ONLY_RESERVED_HERE


class SecateurCompiler(postgresql.PGCompiler):
    """Compiles queries and changes of rows."""

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._call("regexp_matches", binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self._call('regexp_matches', binary, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._call("regexp_replace", binary, **kw)

    def _call(self, function: str, binary: Any, **kw: Any) -> str:
        flags = binary.modifiers["flags"]
        values = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        if flags is not None:
            values.append(self.render_literal_value(flags, sqltypes.STRINGTYPE))
        return f"{function}({', '.join(values)})"

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, _cast_applied: Any = None, **kw: Any) -> str:
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        if binary.type._type_affinity is sqltypes.JSON:
            return f"json_extract({left}, {right})"
        return f"CAST(json_extract_string({left}, {right}) AS {self.dialect.type_compiler.process(binary.type)})"

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        raise CompileError("match() is a search in texts, which secateur does not have: use like() or regexp_match()")

    def visit_array(self, element: Any, **kw: Any) -> str:
        return f"[{self.visit_clauselist(element, **kw)}]"

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        raise CompileError("with_for_update() locks rows for a transaction, and there are none over several statements")

    def visit_sequence(self, sequence: Any, **kw: Any) -> str:  # type: ignore[override]
        raise CompileError(f"sequence {sequence.name!r}: there are none; make keys in Python, such as uuid.uuid4()")

    def _on_conflict_target(self, clause: Any, **kw: Any) -> str:
        if clause.constraint_target is not None:
            raise CompileError(
                f"ON CONFLICT of constraint {clause.constraint_target!r}: constraints have no names; give the columns"
                " of the primary key as index_elements"
            )
        if clause.inferred_target_whereclause is not None:
            raise CompileError("ON CONFLICT with index_where: only the primary key is unique, and it has no condition")
        return super()._on_conflict_target(clause, **kw)


class SecateurDdlCompiler(compiler.DDLCompiler):
    """Compiles the statements that make and drop tables, views and indexes.

    What would be accepted and then not be kept is refused: constraints other than the key and CHECK, identities and
    computed columns.
    """

    dialect: Any

    def get_column_specification(self, column: Any, **kw: Any) -> str:
        for has, what in (
            (column.computed is not None, "a computed column"),
            (column.identity is not None, "an identity, which numbers rows"),
        ):
            if has:
                raise CompileError(f"{what} is not supported: give the value in Python, by default= of the column")
        text = f"{self.preparer.format_column(column)} {self.dialect.type_compiler_instance.process(column.type)}"
        default = self.get_column_default_string(column)
        if default is not None:
            text = f"{text} DEFAULT {default}"
        return text if column.nullable else f"{text} NOT NULL"

    def visit_create_table(self, create: Any, **kw: Any) -> str:
        table = create.element
        if table._prefixes:
            raise CompileError(
                f"table {table.name!r}: a {' '.join(table._prefixes)} table is not supported; every table is of all"
                " connections, so create one without prefixes, and drop it"
            )
        return super().visit_create_table(create, **kw)

    def create_table_constraints(self, table: Any, _include_foreign_key_constraints: Any = None, **kw: Any) -> str:
        constraints = super().create_table_constraints(table, _include_foreign_key_constraints, **kw)
        indexed = [column for column in table.columns if column.index]
        if table.primary_key.columns or not indexed:  # a table without one may have a row several times
            return constraints
        key = ", ".join(self.preparer.format_column(column) for column in indexed)
        return ", \n\t".join(filter(None, (constraints, f"PRIMARY KEY ({key})")))

    def visit_primary_key_constraint(self, constraint: Any, **kw: Any) -> str:
        columns = constraint.columns_autoinc_first if constraint._implicit_generated else constraint.columns
        return f"PRIMARY KEY ({', '.join(self.preparer.format_column(column) for column in columns)})"

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        self._unenforced("FOREIGN KEY", constraint)

    def visit_unique_constraint(self, constraint: Any, **kw: Any) -> Any:
        self._unenforced("UNIQUE", constraint)

    def _unenforced(self, what: str, constraint: Any) -> None:
        """Leave a constraint out.

        Raises:
            CompileError: The engine was not told to.
        """
        if not self.dialect.leaves_out_constraints:
            raise CompileError(
                f"table {constraint.table.name!r}: {what} is not supported, only the primary key and CHECK are"
                " checked. To leave such constraints out of CREATE TABLE, make the engine with create_engine(...,"
                " leave_out_constraints=True)"
            )

    def post_create_table(self, table: Any) -> str:
        options = table.dialect_options["secateur"]
        parts = []
        if options["partition_by"]:
            parts.append(f"PARTITION BY {options['partition_by']}")
        if options["replicated"]:
            parts.append("REPLICATED")
        if options["backups"] is not None:
            parts.append(f"BACKUPS {int(options['backups'])}")
        if options["change_feed"]:
            parts.append("WITH (change_feed = true)")
        return "".join(f"\n{part}" for part in parts)

    def visit_create_index(
        self, create: Any, include_schema: bool = False, include_table_schema: bool = True, **kw: Any
    ) -> str:
        index = create.element
        if index.unique:
            raise CompileError(f"index {index.name!r}: a unique index is not supported, only the primary key is unique")
        return super().visit_create_index(create, include_schema, include_table_schema, **kw)

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        exists = "IF EXISTS " if drop.if_exists else ""
        return f"\nDROP INDEX {exists}{self._prepared_index_name(drop.element)}"

    def visit_add_constraint(self, create: Any, **kw: Any) -> str:
        raise CompileError("ALTER TABLE ... ADD CONSTRAINT is not supported: only the primary key is checked")

    def visit_drop_constraint(self, drop: Any, **kw: Any) -> str:
        raise CompileError("ALTER TABLE ... DROP CONSTRAINT is not supported: only the primary key is checked")


class InsertOnConflict(Insert):
    """An INSERT with ``on_conflict_do_update``, ``on_conflict_do_nothing`` and ``excluded``."""

    stringify_dialect = "secateur"
    inherit_cache = Insert.inherit_cache  # SQLAlchemy 2.0 compiles each one anew


def insert(table: Any) -> InsertOnConflict:
    """Begin an INSERT that may say what happens to rows whose keys are there already.

    Args:
        table: A :class:`sqlalchemy.Table`, or a mapped class. ``index_elements`` of its ``on_conflict_...`` methods are
            columns of the primary key, which alone is unique; names of constraints are not known.
    """
    return InsertOnConflict(table)
