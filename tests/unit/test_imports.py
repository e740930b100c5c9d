"""The house rules that a reader relies on: imports point one way, each outside library sits behind one place, public
names exist.

Sources are read with ``ast``, not imported: an import inside a function or under ``TYPE_CHECKING`` counts as well. A
rule is one test that lists every breach: one test for each file of each rule would be a sixth of all tests, and parse
each file again.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "secateur"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# A room may import from the floors below it and from itself. Rooms on one floor do not know each other.
FLOORS = [
    {"cached_properties", "dependencies", "errors", "exports", "forks", "native", "tracing"},
    {"memory_database", "structured_logs"},
    {"tunable"},
    {"engine_limits"},
    {"partitioning", "drawing"},
    {"protocol"},
    {"wire"},
    {"duckdb_expressions"},
    {"client", "dag"},
    {"storage", "http", "aio", "notebook"},
    {"sqlalchemy_dialect"},
    {"engine"},
    {"connectors", "processors"},
    {"pipeline", "testing"},
    {"planner"},
    {"cluster"},
    {"server"},
    {"cli"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# Library -> the only files or folders that may import it.
HOMES = {
    "ray": ["cluster/runtimes/"],
    "pyspark": ["connectors/spark/"],
    "py4j": ["connectors/spark/"],
    "typer": ["cli/"],
    "prompt_toolkit": ["cli/"],
    "pygments": ["cli/"],
    "rich": ["cli/"],
    "fastapi": ["server/"],
    "h11": ["server/"],
    "httpx": ["http/"],
    "jinja2": ["server/dashboard/"],
    "starlette": ["server/"],
    "uvicorn": ["server/"],
    "prometheus_client": ["server/"],
    "opentelemetry": ["tracing.py"],
    "cryptography": ["wire/signed_tokens.py"],
    "jwt": ["wire/signed_tokens.py"],
    "greenlet": ["aio/"],
    "sqlalchemy": ["sqlalchemy_dialect/"],
    "alembic": ["sqlalchemy_dialect/"],
    "duckdb": [
        "memory_database.py",
        "engine/kernels/",
        "duckdb_expressions.py",
        "client/copy/",
        "client/execution/verify_change.py",
    ],
}

PUBLIC_NAMES = [
    "BINARY",
    "DAG",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Cluster",
    "Connection",
    "CostModel",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "EngineLimits",
    "Error",
    "Explain",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Job",
    "JobConfig",
    "JobInfo",
    "JobStatus",
    "Jwt",
    "LightJob",
    "MemberInfo",
    "NotSupportedError",
    "OperationalError",
    "Pipeline",
    "ProgrammingError",
    "QueryStats",
    "TableHandle",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Tls",
    "Warning",
    "aio",
    "apilevel",
    "attach",
    "between",
    "connect",
    "connectors",
    "from_",
    "paramstyle",
    "processors",
    "spark",
    "start",
    "threadsafety",
]

BARE_IMPORT_NEVER_LOADS = ["asyncio", "msgspec", "numpy", "pyarrow", "secateur.client"]
CLIENT_NEVER_LOADS = ["duckdb", "pandas", "pyspark", "ray", "secateur.engine", "secateur.planner"]


@dataclass(frozen=True, slots=True)
class Source:
    """What the rules ask of a file.

    The trees of all files are a million nodes, at which the garbage collector looks again and again: none is kept.
    """

    imports: tuple[tuple[int, str | None, str], ...]
    """Line, module and name; no module for ``import name``, and one that begins with a dot for a relative import."""
    lists: tuple[tuple[str, ...], ...]
    """Each ``__all__``."""


@functools.cache
def read(source: str) -> Source:
    tree = ast.parse(source)
    return Source(
        tuple(
            (node.lineno, module, alias.name)
            for node in statements_in(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for module in [None if isinstance(node, ast.Import) else "." * node.level + (node.module or "")]
            for alias in node.names
        ),
        tuple(
            tuple(ast.literal_eval(node.value))
            for node in tree.body
            if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
        ),
    )


def statements_in(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of a file, however deep: imports are some of them, and most nodes of a file are expressions."""
    for parts in (getattr(tree, name, ()) for name in ("body", "orelse", "finalbody", "handlers", "cases")):
        for part in parts:
            yield part
            yield from statements_in(part)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(path: Path) -> list[tuple[int, str]]:
    """Line and absolute dotted name of everything that a source file imports."""
    found = []
    for line, module, name in read(path.read_text(encoding="utf-8")).imports:
        assert not (module or "").startswith("."), f"{path}:{line}: relative import; write the absolute name"
        found.append((line, name if module is None else f"{module}.{name}"))
    return found


def room_of(dotted: str) -> str | None:
    """The room that a dotted name inside secateur belongs to; None for the package itself and for other packages."""
    parts = dotted.split(".")
    return (
        parts[1]
        if len(parts) > 1
        and parts[0] == "secateur"
        and (PACKAGE / parts[1]).exists() | (PACKAGE / f"{parts[1]}.py").exists()
        else None
    )


def place_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


PLACES = {".".join(path.relative_to(ROOT).with_suffix("").parts): place_of(path) for path in SOURCES}
"""The files of the package by their dotted names."""


def room_breaches(path: Path) -> list[str]:
    own = place_of(path).split("/")[0].removesuffix(".py")
    if own not in FLOOR_OF:
        return []
    breaches = []
    for line, name in imports_of(path):
        other = room_of(name)
        if other is not None and other != own and FLOOR_OF.get(other, len(FLOORS)) >= FLOOR_OF[own]:
            breaches.append(f"{place_of(path)}:{line}: {own} imports {name}, which is not on a floor below")
    return breaches


def library_breaches(path: Path) -> list[str]:
    place = place_of(path)
    breaches = []
    for line, name in imports_of(path):
        library = name.split(".")[0]
        homes = HOMES.get(library)
        if homes is not None and not any(
            place == home or (home.endswith("/") and place.startswith(home)) for home in homes
        ):
            breaches.append(f"{place}:{line}: only {' and '.join(homes)} may import {library}")
    return breaches


def circles_of(imports: Mapping[str, set[str]]) -> list[set[str]]:
    """The groups of files of which each imports all others, directly or through some of them.

    Source: Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1972.
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    circles = []

    def visit(file: str) -> None:
        number[file] = lowest[file] = len(number)
        path.append(file)
        for other in sorted(imports[file]):
            if other not in number:
                visit(other)
                lowest[file] = min(lowest[file], lowest[other])
            elif other in path:
                lowest[file] = min(lowest[file], number[other])
        if lowest[file] == number[file]:
            circle = set(path[path.index(file) :])
            del path[path.index(file) :]
            if len(circle) > 1:
                circles.append(circle)

    for file in sorted(imports):
        if file not in number:
            visit(file)
    return circles


def imported_files(path: Path) -> set[str]:
    """The files of the package that a file imports, also through the rooms that export their names."""
    names = {name for _, name in imports_of(path)}
    for room, _, last in [name.rpartition(".") for name in names]:
        names |= {room, ROOMS.get(room, {}).get(last, room)}  # where the last part is a name of a file
    return {PLACES[name] for name in names if name in PLACES} - {place_of(path)}


@pytest.mark.parametrize(
    ("imports", "circles"),
    [
        pytest.param({"a": {"b", "c"}, "b": {"c"}, "c": set()}, [], id="none"),
        pytest.param({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [{"a", "b"}], id="two files, and one that uses them"),
        pytest.param({"a": {"b"}, "b": {"c"}, "c": {"d", "a"}, "d": set()}, [{"a", "b", "c"}], id="three files"),
    ],
)
def test_circles_are_found(imports: dict[str, set[str]], circles: list[set[str]]) -> None:
    assert circles_of(imports) == circles


def test_no_files_import_each_other() -> None:
    found = circles_of({place_of(path): imported_files(path) for path in SOURCES})
    assert found == [], "put what both need into a file of its own; a renderer is a function over a value"


def test_no_room_loads_its_own_files() -> None:
    """With the rule on circles, this keeps threads that import at once from waiting for each other: see exports.py."""
    found = [
        f"{place_of(path)}:{node.lineno}: {name}"
        for path in SOURCES
        if path.name == "__init__.py"
        for node in tree_of(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
        if name.startswith(".".join(path.relative_to(ROOT).parent.parts) + ".") and name != "secateur.exports"
    ]
    assert found == [], "list it in _FILES, and import it under TYPE_CHECKING if users need its types"


def test_every_room_has_a_floor() -> None:
    rooms = {place_of(path).split("/")[0].removesuffix(".py") for path in SOURCES}
    # The package's own front door is above all floors.
    assert rooms - {"__init__", "__main__"} <= FLOOR_OF.keys()


def test_imports_point_one_way() -> None:
    assert [breach for path in SOURCES for breach in room_breaches(path)] == []


def test_each_library_sits_behind_one_place() -> None:
    assert [breach for path in SOURCES for breach in library_breaches(path)] == []


@pytest.mark.parametrize(
    ("place", "source", "breaches"),
    [
        pytest.param("storage/x.py", "from secateur.engine import plan", 1, id="upwards"),
        pytest.param("dag/x.py", "import secateur.client", 1, id="same-floor"),
        pytest.param(
            "client/x.py", "def f():\n    from secateur.planner.plan import SelectPlan", 1, id="inside-a-function"
        ),
        pytest.param(
            "cluster/x.py", "from secateur.errors import Error\nfrom secateur.wire import Channel", 0, id="downwards"
        ),
        pytest.param("cluster/x.py", "import ray", 1, id="library-elsewhere"),
        pytest.param("cluster/runtimes/ray.py", "import ray.util", 0, id="library-at-home"),
        pytest.param("engine/kernels/x.py", "import duckdb", 0, id="library-in-its-folder"),
        pytest.param("client/copy/x.py", "import duckdb", 0, id="library-of-copy"),
        pytest.param("client/x.py", "import duckdb", 1, id="library-of-copy-elsewhere"),
        pytest.param("engine/x.py", "from duckdb import connect", 1, id="library-beside-its-folder"),
    ],
)
def test_the_rules_find_what_they_forbid(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str, source: str, breaches: int
) -> None:
    for room in FLOOR_OF:
        (tmp_path / room).mkdir()
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    assert len(room_breaches(path) + library_breaches(path)) == breaches


EXPORTS = {"exports(__name__, _FILES)", "exports_of_files(__name__, __path__)"}


def is_reexport(node: ast.stmt) -> bool:
    """Whether a statement of an ``__init__`` only exports."""
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_all = isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node)
    is_exports = isinstance(node, ast.Assign) and ast.unparse(node.value) in EXPORTS
    # PEP 562: a lazy re-export, so that importing the package does not import Spark; PEP 249's globals and the
    # version are constants.
    is_lazy = isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__")
    is_constant = (
        isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and isinstance(node.value, ast.Constant | ast.Dict)
    )
    is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    is_import = isinstance(node, ast.Import | ast.ImportFrom)
    return is_import or is_docstring or is_all or is_exports or is_lazy or is_constant or is_typing


def test_package_inits_only_reexport() -> None:
    assert [
        f"{place_of(path)}:{node.lineno}"
        for path in SOURCES
        if path.name == "__init__.py"
        for node in tree_of(path).body
        if not is_reexport(node)
    ] == []


HAND_ON = ["cached_properties.py", "processors.py"]
"""Files that hand on what they import; every other one says by an underscore what is its own alone."""


def public_name_breaches(path: Path) -> list[str]:
    place = place_of(path)
    lists = read(path.read_text(encoding="utf-8")).lists
    if path.name != "__init__.py" and place not in HAND_ON:
        return [f"{place} has an __all__" for _ in lists]
    if not lists:
        return []
    if len(lists) > 1:
        return [f"{place} has {len(lists)} lists __all__"]
    [names] = lists
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    # The order of the names is held by ruff.
    twice = [f"{place}: {name} twice in __all__" for name in sorted(set(names)) if names.count(name) > 1]
    return twice + [f"{place}: {name} is in __all__ only" for name in names if not hasattr(module, name)]


def test_public_names_exist() -> None:
    assert [breach for path in SOURCES for breach in public_name_breaches(path)] == []


def test_the_public_names() -> None:
    """What a user writes after ``import secateur``: adding to it is a decision, and taking away breaks somebody."""
    secateur = importlib.import_module("secateur")
    assert secateur.__all__ == PUBLIC_NAMES
    assert [name for name in PUBLIC_NAMES if not hasattr(secateur, name)] == []
    assert set(dir(secateur)) == {*PUBLIC_NAMES, "__version__", "client", "errors"}


def test_a_client_loads_no_planner_engine_or_heavy_library() -> None:
    code = f"import sys, secateur.client.connect; print([n for n in {CLIENT_NEVER_LOADS!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_import_secateur_alone_loads_no_client_and_no_library() -> None:
    never = [*BARE_IMPORT_NEVER_LOADS, *CLIENT_NEVER_LOADS]
    code = f"import sys, secateur; print([name for name in {never!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_client_is_loaded_at_its_first_use() -> None:
    code = (
        "import secateur; assert callable(secateur.connect); assert secateur.client.Cursor is secateur.Cursor;"
        " print(secateur.apilevel, secateur.Connection.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["2.0", "secateur.client.dbapi.connection"]


def test_commands_load_no_line_editor_parser_or_kernel() -> None:
    """The shell does; all other commands would wait for them for a sixth of a second."""
    never = ["prompt_toolkit", "duckdb", "fastapi", "ray"]
    code = f"import sys, secateur.cli.app; print([name for name in {never!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_a_controller_loads_no_pandas() -> None:
    """PyArrow's datasets import it, which takes a quarter of a second of processor time."""
    code = "import sys, secateur.cluster.controller; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def test_a_member_loads_neither_the_controller_nor_the_planner_nor_pandas() -> None:
    """They take most of a second of processor time, for which a lost member would be missing longer."""
    unwanted = [
        *("secateur.cluster.cluster", "secateur.cluster.controller", "secateur.planner.statement"),
        "pandas",
    ]
    code = f"import sys, secateur.cluster.runtimes.member_actor; print([m for m in {unwanted} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


# Arrow bytes of another process become tables in one place, which checks them. What a process has written itself may be
# mapped as it is; the file of a user is read, and checked, in the user's process.
ARROW_READERS = {
    "client/copy/table_file.py",
    "protocol/arrow_ipc.py",
    "storage/block.py",
    "storage/log/records.py",
}
READS_ARROW = {
    "open_stream",
    "open_file",
    "read_message",
    "read_record_batch",
    "read_schema",
    "read_tensor",
    "RecordBatchStreamReader",
}


def test_arrow_bytes_are_read_by_the_one_function_that_checks_them() -> None:
    found = [
        f"{place_of(path)}:{node.lineno}: {node.attr}"
        for path in SOURCES
        if place_of(path) not in ARROW_READERS and any(name in path.read_text(encoding="utf-8") for name in READS_ARROW)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr in READS_ARROW and _is_of_arrow(node.value)
    ]
    assert found == [], "use secateur.wire.decode_table or decode_schema"


def _is_of_arrow(node: ast.expr) -> bool:
    """Whether an expression is ``pa``, ``pa.ipc``, ``pa.Buffer`` and so on."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("pa", "pyarrow", "ipc")


TESTS = ROOT / "tests"
MODULES_MAX = 124
"""How many modules of secateur the unit tests may import directly, rooms included."""


def names_imported(source: str) -> list[tuple[int, str, str]]:
    """Line, module and name of everything that is imported from secateur by name."""
    return [
        (line, module, name)
        for line, module, name in read(source).imports
        if module is not None and module.split(".")[0] == "secateur"
    ]


def files_of(source: str) -> dict[str, list[str]]:
    """What a room hands to ``secateur.exports``: the names of each file."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(source).body if "_FILES" in source else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_FILES":
            found = ast.literal_eval(node.value)
    return found


def defined_in(path: Path) -> Iterator[str]:
    """The names that a file defines, and others may import."""
    for node in tree_of(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        for name in (getattr(target, "id", getattr(target, "name", "_")) for target in targets):
            if not name.startswith("_") and len(name) > 1:
                yield name


def exporting_rooms() -> dict[str, dict[str, str]]:
    """Dotted name of a package -> the names that it exports -> the module that each comes from."""
    found = {}
    for path in sorted(PACKAGE.rglob("__init__.py")):
        room, source = ".".join(path.relative_to(ROOT).parent.parts), path.read_text(encoding="utf-8")
        found[room] = {
            name: importlib.util.resolve_name(f".{file}", room)
            for file, names in files_of(source).items()
            for name in names
        }
        found[room] |= {  # as mypy sees them: from their own files
            name: module for _, module, name in names_imported(source) if module not in (room, "secateur.exports")
        }
        if "exports_of_files" in source:
            found[room] |= {
                name: f"{room}.{file.stem}" for file in path.parent.glob("[!_]*.py") for name in defined_in(file)
            }
    return found


ROOMS = exporting_rooms()
TEST_SOURCES = {
    path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))
}


def module_of(module: str, name: str) -> str:
    """Return the module that ``from module import name`` reads: a file of the room unless the room exports ``name``."""
    is_file = (ROOT / module.replace(".", "/") / f"{name}.py").exists()
    return f"{module}.{name}" if is_file and name not in ROOMS.get(module, ()) else module


def rooms_around(module: str) -> Iterator[str]:
    """The packages in which a file lies, the innermost first."""
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def room_name_breaches(source: str) -> list[str]:
    """Imports from a file of what its room exports, or a room around that."""
    return [
        f"line {line}: from {room} import {name}"
        for line, module, name in names_imported(source)
        if module.count(".") > 1
        for room in rooms_around(module)
        if ROOMS.get(room, {}).get(name) == module
    ]


def test_what_a_room_exports_is_imported_from_the_room() -> None:
    found = [f"{path}: {breach}" for path, source in TEST_SOURCES.items() for breach in room_name_breaches(source)]
    assert found == [], "import it from the room: its files can change then"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param("from secateur.wire.server import FrameServer", 1, id="a name of the room from its file"),
        pytest.param("def f():\n    from secateur.wire.server import FrameServer", 1, id="inside of a function"),
        pytest.param("from secateur.client.jobs.job import Job", 2, id="a name of two rooms from their folder"),
        pytest.param("from secateur.wire import FrameServer", 0, id="a name of the room"),
        pytest.param("from secateur.errors import Error", 0, id="a room that is one file"),
    ],
)
def test_the_rule_on_names_of_rooms_finds_what_it_forbids(source: str, count: int) -> None:
    assert len(room_name_breaches(source)) == count


@pytest.mark.parametrize("room", [room for room, names in ROOMS.items() if names])
def test_a_room_has_what_it_exports(room: str) -> None:
    module = importlib.import_module(room)
    assert [name for name in ROOMS[room] if not hasattr(module, name)] == []
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018


def test_the_code_itself_imports_from_files() -> None:
    """What a room loads later is untyped for mypy, unless its ``__init__`` imports it under TYPE_CHECKING."""
    inits = {room: (ROOT / room.replace(".", "/") / "__init__.py").read_text(encoding="utf-8") for room in ROOMS}
    untyped = {
        room: {name for names in files_of(source).values() for name in names}
        - {name for _, _, name in names_imported(source)}
        for room, source in inits.items()
    }
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, module, name in names_imported(path.read_text(encoding="utf-8"))
        if name in untyped.get(module, ())
    ]
    assert found == []


def test_unit_tests_know_few_modules() -> None:
    """A room exports the names that unit tests need.

    A test of another name becomes a case of tests/plans, or goes through the room's interface.
    """
    units = [source for path, source in TEST_SOURCES.items() if path.startswith("unit/")]
    modules = {module_of(module, name) for source in units for _, module, name in names_imported(source)}
    assert len(modules) <= MODULES_MAX, f"add the names that a test needs to _FILES of their room: {sorted(modules)}"


def test_no_file_has_the_name_of_what_its_room_loads_later() -> None:
    """Once the file is imported, the room has the module under that name, and not what it exports."""
    found = [
        f"{room}.{name}"
        for room, names in ROOMS.items()
        for name in names
        if (ROOT / room.replace(".", "/") / f"{name}.py").exists()
        and "__getattr__" in vars(importlib.import_module(room))
    ]
    assert found == []
