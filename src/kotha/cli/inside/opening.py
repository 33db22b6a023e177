"""What the commands of ``inside`` share: their flags, opening a model, and how a view is handed over."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kotha.cli import spoken
from kotha.cli.flags import flag, page
from kotha.cli.naming import place
from kotha.cli.terminal import print_json, results
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.artifacts.model_folder import Bundle
    from kotha.inside.view import View

RunOrNone = Annotated[
    Path | None,
    flag(
        "A run folder (its best model), or a model folder; left out, or box: the model in the box.",
        converter=lambda _, words: place(words[0].value),
    ),
]
TextGiven = Annotated[str | None, flag("What the model reads; [MASK] hides a word from a BERT.")]
Second = Annotated[str | None, flag("The second sentence of a pair, for a BERT.")]
Target = Annotated[str | None, flag("The translation, for a Seq2Seq; left out, the model writes it.")]
Image = Annotated[Path | None, flag("A PNG, JPEG, PGM, .npy or .json image, for a ViT.")]
Generate = Annotated[int | None, flag("Let the model add so many tokens, and look there too.")]
Tokens = Annotated[int, flag("Read so many tokens at most: each head is measured on all of them.")]
Html = Annotated[Path | None, page("Write one offline page to this file.")]


def open_model(run: Path) -> "Bundle":
    """The model of a run or model folder, with its tokenizer; narrow weights as float32, in which none is lost."""
    from kotha.artifacts import model_folder as bundle

    return bundle.load(run).widened()


def tell(remarks: Iterable[Text]) -> None:
    """Say on stderr what the user should know about how the input was taken."""
    for remark in remarks:
        spoken.tell(remark)


def hand_over(view: "View[Any]", html: Path | None, as_json: bool, about: Message, one_line: bool = False) -> bool:
    """Tell a view's remarks, write its page, print its JSON; whether a table is still to be printed."""
    tell(view.remarks)
    if html is not None:
        view.save(html)
    if as_json:
        print_json(view.to_dict(), indent=None if one_line else 2)  # a line for each weight would be long
    elif html is not None:
        results().print(
            spoken.said(Message("{html}: {about}; open it in a browser", html=html, about=about)), markup=False
        )
    return not as_json and html is None
