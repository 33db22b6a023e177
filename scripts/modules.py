"""Write docs/dev/modules.md: the modules in the package by folder, with the first line of their docstrings.

``make map`` writes the page; ``--check`` only reports whether it is up to date. The page is not edited by hand. The
script needs only the standard library.
"""

import argparse
import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "kotha"
PAGE = ROOT / "docs" / "dev" / "modules.md"
TOP = """# Every module in one line

Made by `make map` from the modules themselves; edit their docstrings, not this page. Paths are under `src/kotha/`.
Why the house is built so is in `docs/dev/design.md`.
"""


def first_line(path: Path) -> str:
    """Return the first paragraph of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise SystemExit(f"{path.relative_to(ROOT)} has no docstring; say in its first line what it is")
    return " ".join(docstring.split("\n\n")[0].split())


def page() -> str:
    """Return the page, with folders in order, each with its modules."""
    text = TOP
    for folder in sorted({path.parent for path in SOURCE.rglob("*.py")}):
        name = folder.relative_to(SOURCE).as_posix() + "/" if folder != SOURCE else "kotha/"
        text += f"\n## {name}\n\n{first_line(folder / '__init__.py')}\n\n"
        modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
        text += "".join(f"- `{path.relative_to(SOURCE).as_posix()}`: {first_line(path)}\n" for path in modules)
    return text


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page is not fresh")
    fresh = page()
    if parser.parse_args(arguments).check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
            print("docs/dev/modules.md is not what the modules say; run: make map", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
