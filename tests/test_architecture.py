"""The import table of docs/design.md, kept."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "kotha"

# Small modules at the root that stand on nothing; any room may use them.
LEAVES = {"chart", "errors", "files", "page", "wording"}

# Which rooms each room may import, besides itself and the leaves.
MAY_IMPORT: dict[str, set[str]] = {
    "chart": set(),
    "errors": set(),
    "files": set(),
    "page": set(),
    "wording": set(),
    "text": set(),
    "model": set(),
    "bundle": {"text", "model"},
    "runs": {"text", "model", "bundle"},
    "train": {"text", "model", "bundle", "runs"},
    "generate": {"text", "model", "bundle", "runs"},
    "export": {"text", "model", "bundle", "runs", "generate"},
    "evaluate": {"text", "model", "bundle", "runs", "generate"},
    "inside": {"text", "model", "bundle", "runs", "train", "generate", "evaluate"},
}
MAY_IMPORT["api"] = {*MAY_IMPORT["inside"], "inside", "export"}
MAY_IMPORT["serve"] = {*MAY_IMPORT["api"], "api"}
MAY_IMPORT["cli"] = {*MAY_IMPORT["serve"], "serve"}

# What the training core may stand on, so that it runs on a bare GPU machine; the rest is imported where it is used.
CORE = {"text", "model", "bundle", "runs", "train", "generate", "evaluate"} | LEAVES
CORE_LIBRARIES = {"torch", "numpy", "tokenizers", "safetensors", "regex"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


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
    """The module without its functions: what runs when it is imported."""
    kept = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) and node in tree.body]
    return ast.Module(body=kept, type_ignores=[])


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_rooms_import_only_what_the_table_allows(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    allowed = MAY_IMPORT[room] | LEAVES | {room}
    for name in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
        parts = name.split(".")
        if parts[0] == "kotha" and len(parts) > 1 and (SOURCE / parts[1]).with_suffix("").name not in ("__version__",):
            assert parts[1] in allowed, (
                f"{path.relative_to(SOURCE)} imports {name}; {room} may import {sorted(allowed)}"
            )


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_core_stands_on_few_libraries(path: Path) -> None:
    if room_of(path) not in CORE:
        return
    for name in imports_of(top_level(ast.parse(path.read_text(encoding="utf-8")))):
        library = name.split(".")[0]
        known = library in sys.stdlib_module_names or library in CORE_LIBRARIES or library == "kotha"
        assert known, f"{path.relative_to(SOURCE)} imports {library} at its top; import it where it is used"


def test_no_room_is_called_utils() -> None:
    names = {path.stem for path in modules()} | {path.parent.name for path in modules()}
    assert not names & {"utils", "util", "common", "helpers", "misc"}


def test_importing_kotha_imports_nothing_heavy() -> None:
    code = "import sys, kotha; print(sorted({'torch', 'numpy', 'tokenizers', 'rich', 'regex'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
