"""``kotha fill``: which words a BERT puts into a gap."""

from typing import Annotated

from kotha.cli.flags import InLanguage, Json, RunOfOnesOwn, flag
from kotha.cli.spoken import said
from kotha.cli.terminal import print_json, results
from kotha.i18n.message import Message


def fill(
    run: RunOfOnesOwn,
    text: Annotated[str, flag("A text with [MASK] where words are missing; with --next, a sentence.")],
    /,
    *,
    words: Annotated[int, flag("How many words to offer for each gap.")] = 5,
    next: Annotated[str | None, flag("A sentence: say whether it follows the text.")] = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Fill the gaps of a text with the likeliest words, or judge whether one sentence follows another."""
    from kotha.api.model import load

    lm = load(run)
    if next is not None:
        chance = lm.follows(text, next)
        if as_json:
            print_json({"follows": chance})
        else:
            results().print(said(Message("{chance:.1%} that it follows", chance=chance)), markup=False)
        return
    filled = lm.fill(text, words=words)
    if as_json:
        print_json(filled.to_dict())
        return
    console = results()
    for turn, guesses in enumerate(filled.words):
        if len(filled.words) > 1:
            console.print(said(Message("gap {turn}", turn=turn + 1)), markup=False)
        for guess in guesses:
            console.print(f"{guess.probability:6.1%}  {guess.text}", markup=False)
