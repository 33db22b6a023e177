"""Check English prose against the word list in scripts/prose.txt.

    python scripts/prose.py [FILE ...]

The script reads README and docs, and the docstrings, comments and messages in the Python files. It prints one line per
match with the suggestion, and exits with 1 if there are any. Code blocks, inline code and Bangla quotations are
skipped.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Generated pages repeat their sources; experiments.md is a log of what was written at the time.
SKIPPED = (
    *("docs/reference/commands.md", "docs/reference/python.md", "docs/dev/modules.md", "docs/dev/experiments.md"),
    "tests/test_prose.py",
)


def rules() -> list[tuple[re.Pattern[str], str]]:
    """Return the word list: patterns and their replacements."""
    lines = (ROOT / "scripts" / "prose.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" -> ") for line in lines if line.strip() and not line.startswith("#")]
    return [(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE), advice) for pattern, advice in pairs]


def files() -> list[Path]:
    """Return every file that is checked."""
    pages = [path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if ".bn." not in path.name]
    code = [path for folder in ("src", "scripts", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
    return [path for path in sorted(pages + code) if path.relative_to(ROOT).as_posix() not in SKIPPED]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the prose of a file with its line numbers."""
    text = path.read_text(encoding="utf-8")
    yield from markdown(text) if path.suffix == ".md" else python(text)


def markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines outside code blocks, without inline code."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, re.sub(r"`[^`]*`", "`…`", line)


def python(text: str) -> Iterator[tuple[int, str]]:
    """Yield comments, and string constants of several words."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 1:
            for offset, line in enumerate(node.value.splitlines()):
                yield node.lineno + offset, re.sub(r"``[^`]*``|`[^`]*`", "`…`", line)


def matches(paths: list[Path]) -> list[str]:
    """Return one line for each match."""
    listed, found = rules(), []
    for path in paths:
        for number, line in prose(path):
            for pattern, advice in listed:
                if match := pattern.search(line):
                    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
                    found.append(f"{name}:{number}: {match[0]!r}: write {advice}")
    return found


def main() -> int:
    found = matches([Path(name).resolve() for name in sys.argv[1:]] or files())
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
