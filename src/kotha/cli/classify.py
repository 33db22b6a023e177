"""``kotha classify``: of which class a text or an image is, and why."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kotha.cli.flags import InLanguage, Json, RunOfOnesOwn, flag, page
from kotha.cli.spoken import tell
from kotha.cli.terminal import print_json, results
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from rich.text import Text

    from kotha.generation.classes import Classified

# So many classes of an answer are shown; --json has them all.
_LIKELIEST = 12


def classify(
    run: RunOfOnesOwn,
    /,
    *text: Annotated[str, flag("The texts; for a ViT, image files.", name="TEXT")],
    why: Annotated[bool, flag("Also what each token was worth to the answer.")] = False,
    attention: Annotated[Path | None, page("Of one image: a page that shows which patches each head looks at.")] = None,
    adapter: Annotated[Path | None, flag("An adapter folder (LoRA) to put on RUN, its base.")] = None,
    device: Annotated[str, flag("cpu, cuda, or auto.")] = "auto",
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Say of which class each text is: `kotha classify moods "কী চমৎকার দিন" --why`; or each image: `… digits 7.png`."""
    import kotha
    from kotha.errors import UsageError

    if not text:
        raise UsageError("classify needs TEXT; see kotha classify --help")
    if not all(each.strip() for each in text):
        raise UsageError("a TEXT is empty, and nothing has no class; give words, or for a ViT an image file")
    lm = kotha.load(run, device, adapter)
    if attention is not None and (lm.config.family != "vit" or len(text) > 1):
        raise UsageError("--attention shows one image, of a model that reads images; for texts: kotha inside attention")
    answers = lm.classify(list(text), why=why)
    if attention is not None:
        tell(Message("page in {path}", path=lm.attention(image=text[0]).save(attention)))
    if as_json:
        rows = [{"text": each, **answer.to_dict()} for each, answer in zip(text, answers, strict=True)]
        print_json(rows[0] if len(rows) == 1 else rows)
        return
    for each, answer in zip(text, answers, strict=True):
        results().print(_line(each, answer))


def _line(text: str, answer: "Classified") -> "Text":
    """Probabilities, then the text; with reasons, its tokens coloured by what they were worth."""
    from rich.text import Text

    line = Text()
    for place, (label, probability) in enumerate(list(answer.probabilities.items())[:_LIKELIEST]):
        line.append(f"{label} {probability:.1%}  ", style="bold" if place == 0 else "dim")
    if len(answer.probabilities) > _LIKELIEST:
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
