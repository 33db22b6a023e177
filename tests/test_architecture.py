"""Imports follow the table in docs/dev/design.md."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "kotha"

# From the bottom up: a package may import packages in lower layers, but none in its own layer.
LAYERS: list[set[str]] = [
    {"i18n"},
    {"errors"},
    {"arguments", "storage"},
    {"text", "model"},
    {"artifacts", "report"},
    {"training", "generation", "inside"},
    {"evaluation", "export", "retrieval", "course", "finetune"},
    {"api"},
    {"server", "cli"},
]
LAYER = {name: place for place, names in enumerate(LAYERS) for name in names}
# Imports that are still to be removed; this set must become empty.
STILL_UPWARD: set[tuple[str, str]] = set()

# Libraries that the training core may import, so that it runs on a bare GPU machine; others are imported where used.
CORE = {"errors", "i18n", "storage", "text", "model", "artifacts", "training", "generation", "evaluation"}
CORE_LIBRARIES = {"torch", "numpy", "tokenizers", "safetensors", "regex"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


# Names that two packages still share; this set must become empty.
STILL_SHARED: set[str] = set()
# Modules whose strings may contain flags: plans show complete command lines, and a job runs a command.
SAY_FLAGS = {
    "text/shards.py",
    "training/sweep/findings.py",
    "api/conversion.py",
    "training/plan/render.py",
    "server/jobs/kinds.py",
    "server/jobs/store.py",
}
# Packages that may be called from Python without the command line.
BELOW = [
    path
    for path in modules()
    if room_of(path) not in ("cli", "__main__") and path != SOURCE / "server" / "command.py"  # its own commands
]
# Two dashes that start a word, except for CSS properties (``--ink:``, ``var(--ink)``).
FLAG = re.compile(r"(?<![\w(-])--[a-z][a-z-]*+(?!:)")


def imports_of(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            names.add(node.module or "")
            if node.module == "kotha":
                names |= {f"kotha.{alias.name}" for alias in node.names}
    return names


def top_level(tree: ast.Module) -> ast.Module:
    """Return the module's syntax tree without functions: the code that runs on import."""
    kept = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) and node in tree.body]
    return ast.Module(body=kept, type_ignores=[])


def named(paths: list[Path]) -> pytest.MarkDecorator:
    """Return a test case for each module, by its path."""
    return pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(SOURCE)))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def arrows() -> dict[tuple[str, str], list[str]]:
    """Imports between packages, even lazy and type-checking ones: (importer, imported) -> modules of the importer."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in modules():
        room = room_of(path)
        for name in imports_of(tree_of(path)):
            parts = name.split(".")
            if room in LAYER and parts[0] == "kotha" and len(parts) > 1 and parts[1] in LAYER and parts[1] != room:
                found.setdefault((room, parts[1]), []).append(str(path.relative_to(SOURCE)))
    return found


def test_imports_run_downwards_only() -> None:
    upward = {arrow: files for arrow, files in arrows().items() if LAYER[arrow[1]] >= LAYER[arrow[0]]}
    assert {arrow: files for arrow, files in upward.items() if arrow not in STILL_UPWARD} == {}, "pass a function in"
    assert upward.keys() >= STILL_UPWARD, "gone: take it from the list"


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_no_modules_import_each_other() -> None:
    known = {name_of(path): path for path in modules()}
    graph: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    graph[name].add(full if full in known else str(node.module))
    graph = {
        name: {each for each in found if each in known and each not in (name, "kotha")} for name, found in graph.items()
    }
    while leaves := {name for name, found in graph.items() if not found}:
        graph = {name: found - leaves for name, found in graph.items() if name not in leaves}
    assert graph == {}, "these import each other, or import one that does; pass a function in"


def test_modules_fit_in_400_lines_and_functions_in_60() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert not {name for name, length in lengths.items() if length > 400}
    assert not {
        f"{path.relative_to(SOURCE)}:{node.name}"
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    }


# A command parses, calls the API and prints.
COMMANDS_STAND_ON = {"api", "arguments", "cli", "errors", "i18n", "report"}
# Exceptions and their reasons: paths and names of models before a command runs, JSON on stdout.
COMMANDS_ALSO_STAND_ON = {
    "cli/options.py": {"storage"},
    "cli/model_argument.py": {"storage"},
    "cli/terminal.py": {"storage"},
}


def test_commands_stand_on_the_api() -> None:
    also: dict[str, set[str]] = {}
    for path in modules():
        names = [name.split(".") for name in imports_of(tree_of(path)) if name.startswith("kotha.")]
        if room_of(path) == "cli" and (other := {parts[1] for parts in names} & LAYER.keys() - COMMANDS_STAND_ON):
            also[str(path.relative_to(SOURCE))] = other
    assert also == COMMANDS_ALSO_STAND_ON, "call kotha.api, which does it for Python too"


def test_every_package_has_a_layer() -> None:
    assert {room_of(path) for path in modules()} - LAYER.keys() <= {"__init__", "__main__"}
    assert len({room_of(path) for path in modules()} - {"__init__"}) <= 20


@named([path for path in modules() if room_of(path) in CORE])
def test_the_core_stands_on_few_libraries(path: Path) -> None:
    for name in imports_of(top_level(tree_of(path))):
        library = name.split(".")[0]
        known = library in sys.stdlib_module_names or library in CORE_LIBRARIES or library == "kotha"
        assert known, f"{path.relative_to(SOURCE)} imports {library} at its top; import it where it is used"


def literals(tree: ast.Module) -> list[ast.Constant]:
    """Return the strings in a module, without docstrings."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node for node in found if id(node) not in alone]


def test_what_is_below_the_commands_names_no_flag() -> None:
    flags = {
        f"{path.relative_to(SOURCE)}:{node.lineno}": node.value
        for path in BELOW
        for node in literals(tree_of(path))
        if FLAG.search(str(node.value)) and str(path.relative_to(SOURCE)) not in SAY_FLAGS
    }
    assert not flags, "only commands have flags; speak of arguments"


def test_what_is_below_the_commands_prints_nothing() -> None:
    printing = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in BELOW
        if path != SOURCE / "api" / "progress.py"  # for Python: only on a terminal or in a notebook
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in ("print", "sys.stdout", "sys.stderr")
    ]
    assert not printing, "hand it to the command, which prints"


# Code covered by the guarantees in docs/explanation/reliability.md: checkpoints, data folders, tokenizers, indexes,
# exports and jobs.
PROMISED = (
    *("artifacts/", "export/", "retrieval/", "server/jobs/", "text/shards.py", "text/tokenizer/"),
    *("storage/atomic.py", "storage/output_paths.py", "storage/locks.py", "training/checkpoint", "training/start.py"),
)


@named([path for path in modules() if str(path.relative_to(SOURCE)).startswith(PROMISED)])
def test_the_disk_is_queried_through_storage_status_only(path: Path) -> None:
    """``Path.exists()`` and similar methods return False on an I/O error in newer Pythons, so they are forbidden here.

    ``os.path.exists`` is allowed where arbitrary text is tested for being a path; a run's ``exists`` is unrelated.
    """
    questions = {"exists", "is_file", "is_dir", "is_symlink", "glob", "rglob"}
    asked = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call | ast.Attribute)
        for asking in [node.func if isinstance(node, ast.Call) else node]
        if isinstance(asking, ast.Attribute) and asking.attr in questions
        if isinstance(node, ast.Call) or ast.unparse(asking.value) == "Path"
        if ast.unparse(asking) != "os.path.exists"
    ]
    assert not asked, "use kotha.storage.status"


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for path in modules():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() <= STILL_SHARED, twice


def test_no_room_is_called_utils() -> None:
    names = {path.stem for path in modules()} | {path.parent.name for path in modules()}
    assert not names & {"utils", "util", "common", "helpers", "misc"}


def test_importing_kotha_imports_nothing_heavy() -> None:
    code = "import sys, kotha; print(sorted({'torch', 'numpy', 'tokenizers', 'rich', 'regex'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
