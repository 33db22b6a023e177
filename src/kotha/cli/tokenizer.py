"""``kotha tokenizer``: train, compare, view, import."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.api.data import FILE_NAME, Kind, Level
from kotha.cli.language import log, translate
from kotha.cli.options import Field, OnErrors, Page, Paths, Several, TokenizerName, WorkPlace, group
from kotha.cli.terminal import Output, problems_told, status
from kotha.i18n.message import Message, Plural

if TYPE_CHECKING:
    from kotha import Tokenizer

Overwrite = Annotated[bool, Parameter(help="Replace a tokenizer that exists.")]


def card(
    tokenizers: tuple[str, ...],
    /,
    *,
    text: Several,
    caution: Annotated[bool, Parameter(negative=None)] = True,
    html: Page = None,
    field: Field = "text",
    errors: OnErrors = "stop",
) -> Output:
    """Compare tokenizers on a text: tokens a word, bytes a token, unknowns, letters cut in two, round trip.

    Args:
        tokenizers: Tokenizers: files, folders, or hub names.
        text: The text to measure on: files, folders, globs.
        caution: Add a GPT-2-pattern BPE of the same size, as a caution.
        html: Also write one offline HTML page.
    """
    from kotha.api.data import cards_table, compare_tokenizers

    how: Any = {"caution": caution, "field": field, "errors": errors}
    with status(Message("measuring …")), problems_told() as problems:
        found = compare_tokenizers(tokenizers, text, **how, on_problem=problems)
    return Output(found, cards_table(found.found), page=html)


@group
class OfPieces:
    """Which pieces, and of what text."""

    kind: Kind = "unigram"
    """unigram is the best for most; wordpiece is BERT's; unigram and bpe open in llama.cpp."""
    vocab_size: int = 8192
    """Pieces, special tokens included."""
    split: str | None = None
    """For bpe: qwen35 (opens in llama.cpp) or words."""
    level: Level = "codepoint"
    """For char: codepoint or akshara."""
    field: Field = "text"
    errors: OnErrors = "stop"
    workers: int | None = None
    """Processes that count the text; by default one."""
    on: WorkPlace = None
    overwrite: Overwrite = False


def train(
    paths: Paths,
    /,
    *,
    out: Path,
    pieces: OfPieces = OfPieces(),  # noqa: B008 - frozen
) -> Output:
    """Train a tokenizer on text; its pieces respect letters.

    Args:
        out: Folder for tokenizer.json.
    """
    from kotha.api.data import train_tokenizer

    how: Any = {**vars(pieces)}
    with status(Message("reading …")) as shown, problems_told() as problems:
        how["on_progress"] = lambda stage, *_: shown.update(translate(Message("{stage} …", stage=stage)))
        made = train_tokenizer(paths, out=out, on_problem=problems, **how)
    if made.vocab_size < pieces.vocab_size:
        log(Message("the text fills {n:,} of {asked:,} pieces", n=made.vocab_size, asked=pieces.vocab_size))
    return _described(made, out)


def view(tokenizer: TokenizerName, text: str, /) -> Output:
    """Show how a text is cut: letters as letters, hex only for part of one.

    Args:
        text: The text to cut.
    """
    from kotha.api.data import cut

    found = cut(tokenizer, text)
    tokens = found["tokens"]
    ids = " ".join(str(token["id"]) for token in tokens)
    counted = Plural("{n} token: {ids}", "{n:,} tokens: {ids}", n=len(tokens), ids=ids)
    return Output(found, "│".join(token["text"] for token in tokens), counted)


def import_(source: str, /, *, out: Path, extra_ids: int | None = None, overwrite: Overwrite = False) -> Output:
    """Open a tokenizer from elsewhere and keep it as tokenizer.json.

    Args:
        source: tokenizer.json, spiece.model, vocab.txt or .json, a folder, or a hub name.
        out: Folder for tokenizer.json.
        extra_ids: Sentinels after a bare spiece.model's pieces: T5 has 100. A folder says its own.
    """
    from kotha.api.data import keep_tokenizer

    return _described(keep_tokenizer(source, out, extra_ids=extra_ids, overwrite=overwrite), out)


def _described(made: "Tokenizer", out: Path) -> Output:
    about: dict[str, Any] = {name: getattr(made, name) for name in ("kind", "vocab_size", "fingerprint")}
    found = {"path": str(out if out.suffix == ".json" else out / FILE_NAME), **about}
    return Output(found, Message("{kind} tokenizer with {vocab_size:,} pieces in {path}", **found))
