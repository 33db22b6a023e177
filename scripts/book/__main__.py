"""``python -m scripts.book check|update|notebooks|build [chapter ...]``."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from scripts.book.chapters import ROOT, Chapter, chapters


def main() -> int:
    """Run one of the four commands."""
    parser = argparse.ArgumentParser(prog="python -m scripts.book")
    parser.add_argument("what", choices=("check", "update", "notebooks", "build"))
    parser.add_argument("chapters", nargs="*", help="prefixes of file names, such as 03 (default: all)")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    chosen = [each for each in chapters() if not asked.chapters or each.path.name.startswith(tuple(asked.chapters))]
    if asked.what == "build":
        from scripts.book.site import build

        print(f"the book is in {build()}")
        return 0
    if asked.what == "notebooks":
        from scripts.book.notebooks import write_notebooks

        return print(f"{write_notebooks()} notebooks written") or 0
    return max([_each(asked.what, chapter) for chapter in chosen], default=0)


def _each(what: str, chapter: Chapter) -> int:
    from scripts.book.running import check
    from scripts.book.updating import update

    begun = time.perf_counter()
    if what == "update":
        update(chapter)
    with tempfile.TemporaryDirectory() as folder:
        problems = check(Chapter(chapter.path), Path(folder))
    print(f"{chapter.label}: {len(problems)} problems, {time.perf_counter() - begun:.1f} s", flush=True)
    print("".join(f"  {problem}\n" for problem in problems), end="")
    return 1 if problems else 0


sys.exit(main())
