"""What the commands of ``inside`` share: their flags, and how a view is handed over."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kotha.cli.flags import MODEL, Field, Pair, TextItself, flag, group, page
from kotha.cli.naming import place
from kotha.cli.spoken import tell
from kotha.cli.terminal import Table, print_json, print_parts
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.api.views import View

RunOrNone = Annotated[Path | None, flag(MODEL, converter=lambda _, words: place(words[0].value))]
Generate = Annotated[int | None, flag("Let the model add so many tokens, and look there too.")]
Html = Annotated[Path | None, page("Write one offline page to this file.")]


@group
@dataclass(frozen=True, kw_only=True)
class OfText:
    """What a model reads: one flag for each field."""

    text: Annotated[str | None, flag("What the model reads; [MASK] hides a word from a BERT.")] = None
    second: Annotated[str | None, flag("The second sentence of a pair, for a BERT.")] = None
    target: Annotated[str | None, flag("The translation, for a Seq2Seq; left out, the model writes it.")] = None


@group
@dataclass(frozen=True, kw_only=True)
class OfInput(OfText):
    """The same, or an image."""

    image: Annotated[Path | None, flag("A PNG, JPEG, PGM, .npy or .json image, for a ViT.")] = None


@group
@dataclass(frozen=True, kw_only=True)
class OfHeads:
    """The text that heads are measured on: one flag for each field."""

    text: TextItself = None
    field: Field = "text"
    pair: Pair = None
    tokens: Annotated[int, flag("Read so many tokens at most: each head is measured on all of them.")] = 2048


def hand_over(
    view: "View[Any]", html: Path | None, as_json: bool, about: Message, *parts: Table | Text, indent: int | None = 2
) -> None:
    """Tell a view's remarks; then its JSON, or the page that was written, or its tables."""
    for remark in view.remarks:
        tell(remark)
    if html is not None:
        view.save(html)
    if as_json:
        print_json(view, indent)
    elif html is not None:
        print_parts(Message("{html}: {about}; open it in a browser", html=html, about=about))
    else:
        print_parts(*parts)
