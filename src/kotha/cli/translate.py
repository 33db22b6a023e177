"""``kotha translate``: a text, or a file line by line, in the other language."""

import sys
from pathlib import Path
from typing import Annotated

from kotha.cli.flags import InLanguage, Json, RunOfOnesOwn, flag, page
from kotha.errors import UsageError
from kotha.i18n.message import Message


def translate(
    run: RunOfOnesOwn,
    text: Annotated[str | None, flag("The text to translate.")] = None,
    /,
    *,
    file: Annotated[
        Path | None,
        flag("A file to translate line by line, instead of a text; - is stdin.", allow_leading_hyphen=True),
    ] = None,
    beams: Annotated[int, flag("Translations that are followed side by side; 1 takes the best token each time.")] = 4,
    alignment: Annotated[
        Path | None, page("Of a text: a page that shows which of its words each written one looked at.")
    ] = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Translate with a model that learned from pairs (`kotha inside attention` shows all that it looks at)."""
    if (text is None) == (file is None):
        raise UsageError("give either a text to translate, or --file")
    if alignment is not None and text is None:
        raise UsageError("--alignment shows one text; give it instead of --file")
    from kotha.api.model import load
    from kotha.cli.spoken import tell
    from kotha.cli.terminal import print_json, progress

    lm = load(run)
    if text is not None:
        found = lm.translate(text, beams=beams)
        looked = None if alignment is None else lm.alignment(text, beams=beams)
        if looked is not None and alignment is not None:
            tell(Message("page in {path}", path=looked.save(alignment)))
        if as_json:
            print_json({"text": found, **({} if looked is None else {"alignment": looked.to_dict()})})
        else:
            print(found)
        return
    # A line ends where a file's lines end, and nowhere else: there is one of the translation for each.
    lines = (sys.stdin.read() if str(file) == "-" else _read(file)).removesuffix("\n").split("\n")
    lines = [] if lines == [""] else lines
    with progress() as on_progress:
        several = lm.translate(lines, beams=beams, on_progress=on_progress)
    if as_json:
        print_json([{"source": source, "text": target} for source, target in zip(lines, several, strict=True)])
    else:
        for each in several:
            print(each)


def _read(file: Path | None) -> str:
    assert file is not None, "looked at above"
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("{file} is not UTF-8 text", file=file) from error
