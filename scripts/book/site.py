"""Build the book as a site in two languages, with Zensical in strict mode, from copies of the pages, offline.

Each language is a separate site under ``build/book``. A Bangla page (``01-text.bn.md``) becomes the page of that name
in the Bangla site; if there is none, the English page is used. Links to the other language point to the other site.
Fonts come from the studio. The links, pictures and anchors that the builder cannot check are checked in its output.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scripts.book.chapters import LEARN, ROOT, Chapter, chapters
from scripts.book.notebooks import NOTEBOOKS

DOCS = ROOT / "docs"
THEME = DOCS / "theme"
FONTS = ROOT / "web" / "src" / "fonts"
WORK = ROOT / "build" / "book-source"
SITE = ROOT / "build" / "book"
TITLES = {"en": "Kotha: the book", "bn": "Kotha: বই"}
SECTIONS = {
    "en": {
        "learn": "Learn",
        "howto": "How-to guides",
        "reference": "Reference",
        "explanation": "Background",
        "dev": "For maintainers",
    },
    "bn": {
        "learn": "শিখুন",
        "howto": "কীভাবে করবেন",
        "reference": "তথ্য",
        "explanation": "ব্যাখ্যা",
        "dev": "যাঁরা কোডে কাজ করেন",
    },
}
# Pages directly in docs/, by the section that lists them after the pages in its own folder.
LISTED = {
    "howto": ("which-model.md", "bangla-text.md", "troubleshooting.md"),
    "reference": ("studio.md", "serving.md", "bundled-model.md", "gallery.md"),
}
LANGUAGES = ("en", "bn")
# Word separators: those of Zensical, and Bangla punctuation.
SEPARATOR = r"""[\s\-_,:!=\[\]()\\"`/।॥?;“”‘’…|+×]+|\.(?!\d)"""
_DIRECTIVES = re.compile(r"<!--\s*(?:holds|given|about):.*?-->\n?", re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!</span>)<code>([^<\n]*)</code>")  # the code of a block is preceded by a span
_FLAG = re.compile(r"(?<!\S)--?[a-z][\w-]*")
_LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")


def build(site: Path = SITE, work: Path = WORK) -> Path:
    """Build both languages; return the folder of the site."""
    for folder in (site, work):
        shutil.rmtree(folder, ignore_errors=True)
    for language in LANGUAGES:
        config = stage(language, work)
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config)],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        )
        if done.returncode:
            raise SystemExit(f"the {language} book does not build:\n{done.stdout}{done.stderr}")
        site.mkdir(parents=True, exist_ok=True)
        shutil.move(work / _made(language), site / language)
    keep_flags_whole(site)
    shutil.copyfile(THEME / "start.html", site / "index.html")
    if broken := broken_links(site):
        raise SystemExit("broken links:\n" + "\n".join(broken))
    return site


# -- copies of the pages -------------------------------------------------------------------------------------------


def stage(language: str, work: Path) -> Path:
    """Copy the pages of a language to a folder, and write the builder's settings; return their path."""
    pages = work / language
    for path in sorted(DOCS.rglob("*.md")):
        if THEME in path.parents or (language_of(path) != language and has_twin(path)):
            continue
        target = pages / path.relative_to(DOCS).with_name(plain_name(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_text(path, language), encoding="utf-8")
    shutil.copytree(DOCS / "images", pages / "images")
    if NOTEBOOKS.is_dir():
        shutil.copytree(NOTEBOOKS, pages / "notebooks")
    shutil.copytree(THEME, pages / "theme", ignore=shutil.ignore_patterns("*.html", "overrides"))
    shutil.copytree(FONTS, pages / "theme" / "fonts", ignore=shutil.ignore_patterns("*.txt"))
    config = work / f"{language}.toml"
    config.write_text(settings(language), encoding="utf-8")
    return config


def language_of(path: Path) -> str:
    """Return the language of a page, according to its name."""
    return "bn" if path.name.endswith(".bn.md") else "en"


def plain_name(path: Path) -> str:
    """Return the name of a page without its language."""
    return path.name.replace(".bn.md", ".md")


def has_twin(path: Path) -> bool:
    """Return whether a page exists in both languages."""
    plain = path.with_name(plain_name(path))
    return plain.exists() and plain.with_suffix(".bn.md").exists()


def twins(path: Path) -> list[Path]:
    """Return a page, and its Bangla version if it exists."""
    return [each for each in (path, path.with_suffix(".bn.md")) if each.exists()]


def page_text(path: Path, language: str) -> str:
    """Return a page for the builder, without hidden comments, and with links to the built pages."""
    text = _DIRECTIVES.sub("", path.read_text(encoding="utf-8"))

    def placed(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        if urlsplit(target).scheme or not target.endswith(".md"):
            return found[0]
        here = (path.parent / target).resolve()
        if not here.is_relative_to(DOCS):
            return found[0]
        name = target.replace(".bn.md", ".md")
        if not has_twin(here) or language_of(here) == language:
            return f"]({name}{anchor})"
        across = "../" * (len(path.relative_to(DOCS).parts)) + language_of(here)
        page = here.with_name(plain_name(here)).relative_to(DOCS).with_suffix(".html").as_posix()
        return f"]({across}/{page}{anchor})"

    return _LINK.sub(placed, text)


def others(language: str) -> list[tuple[str, Path]]:
    """Return the titles and paths of the pages that are not chapters."""
    pages = sorted(set(LEARN.glob("[a-z]*.md")) - {each.path for each in chapters()})
    found = [path for path in pages if language_of(path) == language or not has_twin(path)]
    return [(Chapter(path).title, path) for path in found]


# -- the builder's settings ------------------------------------------------------------------------------------------


def navigation(language: str) -> list[object]:
    """Return the pages in the order of the site menu."""
    names = SECTIONS[language]
    learn: list[object] = [{each.title: f"learn/{each.name}.md"} for each in chapters() if each.language == language]
    learn += [{title: f"learn/{plain_name(path)}"} for title, path in others(language)]
    menu: list[object] = ["index.md", {names["learn"]: learn}]
    for section in ("howto", "reference", "explanation", "dev"):
        listed = [path for name in LISTED.get(section, ()) for path in twins(DOCS / name)]
        folder = [*sorted((DOCS / section).glob("*.md")), *listed]
        pages = [path for path in folder if language_of(path) == language or not has_twin(path)]
        if pages:
            paths = {path: path.relative_to(DOCS).with_name(plain_name(path)).as_posix() for path in pages}
            menu.append({names[section]: [{Chapter(path).title: paths[path]} for path in pages]})
    return menu


def _made(language: str) -> str:
    """Return the folder to which the builder writes a site, next to the pages, because it can write nowhere else."""
    return f"made-{language}"


def settings(language: str) -> str:
    """Return the settings for one language as TOML."""
    other = next(each for each in LANGUAGES if each != language)
    told = {
        "site_name": TITLES[language],
        "docs_dir": language,
        "site_dir": _made(language),
        "use_directory_urls": False,
        "nav": navigation(language),
        "extra_css": ["theme/book.css"],
        "extra_javascript": ["theme/search.js"],
    }
    tables = {
        "project.theme": {
            "language": language,
            "font": False,
            "custom_dir": str(THEME / "overrides"),
            "features": [
                "content.code.copy",
                "navigation.footer",
                "navigation.sections",
                "navigation.top",
                "search.highlight",
                "toc.follow",
            ],
        },
        "project.plugins.search": {"separator": SEPARATOR},
        "project.markdown_extensions": {
            "admonition": {},
            "attr_list": {},
            "footnotes": {},
            "md_in_html": {},
            "sane_lists": {},
            "tables": {},
            "toc": {"permalink": True, "slugify": {"object": "scripts.book.slugs.slugs"}},
            "pymdownx.highlight": {"anchor_linenums": False, "pygments_lang_class": True},
            "pymdownx.superfences": {},
        },
    }
    text = "[project]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in told.items())
    for name, table in tables.items():
        text += f"\n[{name}]\n" + "".join(f"{toml_key(key)} = {toml(value)}\n" for key, value in table.items())
    for link, code in ((f"../{language}/index.html", language), (f"../{other}/index.html", other)):
        text += f"\n[[project.extra.alternate]]\nname = {toml({'en': 'English', 'bn': 'বাংলা'}[code])}\n"
        text += f"link = {toml(link)}\nlang = {toml(code)}\n"
    return text


def toml(value: object) -> str:
    """Format a value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def toml_key(key: str) -> str:
    """Format a key as TOML."""
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)


# -- the built site ---------------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """The link targets and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.targets += [value for name in ("href", "src") if (value := given.get(name))]
        self.places |= {value for name in ("id", "name") if (value := given.get(name))}


def keep_flags_whole(site: Path) -> None:
    """Prevent line breaks within options such as ``--sheet``, which browsers break after a hyphen."""
    for path in sorted(site.rglob("*.html")):
        page = path.read_text(encoding="utf-8")
        path.write_text(_INLINE_CODE.sub(lambda found: whole_flags(found[0]), page), encoding="utf-8")


def whole_flags(code: str) -> str:
    """Wrap the options in inline code so that they are not broken across lines.

    >>> whole_flags("<code>kotha lessons --language bn</code>")
    '<code>kotha lessons <span class="flag">--language</span> bn</code>'
    """
    inner = code.removeprefix("<code>").removesuffix("</code>")
    return "<code>" + _FLAG.sub(lambda flag: f'<span class="flag">{flag[0]}</span>', inner) + "</code>"


def broken_links(site: Path) -> list[str]:
    """Return links, pictures, styles and scripts that are missing from a built site, and missing anchors."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are relative to the root of a server
            continue
        for target in page.targets:
            where = urlsplit(target)
            if where.scheme or where.netloc:
                continue
            file = (path.parent / unquote(where.path)).resolve() if where.path else path
            file = file / "index.html" if file.is_dir() else file
            lost = not file.exists()
            if not lost and where.fragment and file in pages:
                lost = unquote(where.fragment) not in pages[file].places and not where.fragment.startswith("__")
            if lost:
                broken.append(f"{path.relative_to(site)}: {target}")
    return broken
