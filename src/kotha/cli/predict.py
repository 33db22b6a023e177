"""Commands for models other than GPTs: ``kotha classify``, ``translate`` and ``fill``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.language import log
from kotha.cli.options import Device, Page, RunOfOnesOwn
from kotha.cli.terminal import Output, progress
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from rich.text import Text as Line

    from kotha.api.model import Classification

# Number of classes shown per text; --json has them all.
_MAX_CLASSES = 12


def classify(
    run: RunOfOnesOwn,
    /,
    *text: Annotated[str, Parameter(name="TEXT")],
    why: bool = False,
    attention: Page = None,
    adapter: Path | None = None,
    device: Device = "auto",
) -> Output:
    """Classify text with a fine-tuned model, or images with a ViT.

    The result is the probability of each class.

    Examples: `kotha classify moods "কী চমৎকার দিন" --why`, `kotha classify digits 7.png`.

    Args:
        text: Texts to classify; for a ViT, image files.
        why: Also show how much each token contributed to the result.
        attention: Output file for a page that shows which patches of one image each head attends to.
        adapter: LoRA adapter folder to apply to RUN, its base model.
    """
    import kotha

    if not text:
        raise UsageError("classify needs TEXT; see kotha classify --help")
    if not all(each.strip() for each in text):
        raise UsageError("a TEXT is empty; give some text, or an image file for a ViT")
    lm = kotha.load(run, device, adapter)
    if attention is not None and (lm.config.family != "vit" or len(text) > 1):
        raise UsageError("--attention needs a ViT and a single image; for texts use kotha inside attention")
    answers = list(zip(text, lm.classify(list(text), why=why), strict=True))
    if attention is not None:
        log(Message("page saved to {path}", path=lm.attention(image=text[0]).save(attention)))
    rows = [{"text": each, **answer.to_dict()} for each, answer in answers]
    return Output(rows[0] if len(rows) == 1 else rows, *(_line(each, answer) for each, answer in answers))


def _line(text: str, answer: "Classification") -> "Line":
    """Format the probabilities and the text; with ``why``, colour the tokens by their contribution."""
    from rich.text import Text as Line

    line = Line()
    for rank, (label, probability) in enumerate(list(answer.probabilities.items())[:_MAX_CLASSES]):
        line.append(f"{label} {probability:.1%}  ", style="bold" if rank == 0 else "dim")
    if len(answer.probabilities) > _MAX_CLASSES:
        line.append("…  ", style="dim")
    if not answer.why:
        return line.append(text)
    line.append("\n")
    largest = max(abs(each.change) for each in answer.why) or 1.0
    for each in answer.why:
        strong = abs(each.change) > largest / 3
        colour = "green" if each.change > 0 else "red"
        line.append(each.text, style=f"bold {colour}" if strong else colour if abs(each.change) > largest / 10 else "")
    for each in sorted(answer.why, key=lambda each: -abs(each.change))[:8]:
        line.append(f"\n{each.change:+7.1%}  {each.text.strip()}", style="dim")
    return line


def translate(
    run: RunOfOnesOwn,
    text: str | None = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    beams: int = 4,
    alignment: Page = None,
) -> Output:
    """Translate a text, or a file line by line, with a model trained on pairs.

    Examples: `kotha translate translator 'The river is wide.'`, `kotha translate translator --file lines.txt`.

    Args:
        text: Text to translate.
        file: File to translate line by line instead of a text; - reads stdin.
        beams: Beam width; 1 selects the most likely token at each step.
        alignment: Output file for a page that shows which source words each translated word attends to.
    """
    if alignment is not None and text is None:
        raise UsageError("--alignment needs a single text; give the text instead of --file")
    if (text is None) == (file is None):
        raise UsageError("give either TEXT or --file")
    import kotha

    lm, lines = kotha.load(run), [text or ""] if file is None else _read_lines(file)
    with progress() as on_progress:
        translations = lm.translate(lines, beams=beams, on_progress=on_progress if file else None)
    if text is None:
        rows = [{"source": source, "text": target} for source, target in zip(lines, translations, strict=True)]
        return Output(rows, *translations)
    found: dict[str, Any] = {"text": translations[0]}
    if alignment is not None:
        view = lm.alignment(text, beams=beams)
        found["alignment"] = view.to_dict()
        log(Message("page saved to {path}", path=view.save(alignment)))
    return Output(found, *translations)


def _read_lines(file: Path) -> list[str]:
    """Read the lines in a file, split only at newlines, so that each line gets one translation."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("{file} is not UTF-8 text", file=file) from error
    lines = text.removesuffix("\n").split("\n")
    return [] if lines == [""] else lines


def fill(run: RunOfOnesOwn, text: str, /, *, words: int = 5, next: str | None = None) -> Output:
    """Fill the gaps in a text with a BERT model, or predict whether one sentence follows another.

    Examples: `kotha fill bert 'নদীর ধারে একটি [MASK] গাছ।'`, `kotha fill bert 'বৃষ্টি নামল।' --next 'সবাই ছাতা খুলল।'`.

    Args:
        text: Text with [MASK] for each missing word; with --next, the first sentence.
        words: Number of candidate words per gap.
        next: Second sentence; if given, the probability that it follows the text is reported.
    """
    import kotha

    lm = kotha.load(run)
    if next is not None:
        chance = lm.follows(text, next)
        return Output({"follows": chance}, Message("{chance:.1%} probability that it follows", chance=chance))
    filled = lm.fill(text, words=words)
    lines: list[Text] = []
    for index, guesses in enumerate(filled.words):
        if len(filled.words) > 1:
            lines.append(Message("gap {turn}", turn=index + 1))
        lines += [f"{guess.probability:6.1%}  {guess.text}" for guess in guesses]
    return Output(filled, *lines)
