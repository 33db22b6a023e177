"""``kotha tokenizer``: train, compare, view and import tokenizers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.api.data import FILE_NAME, Kind, Level
from kotha.cli.language import log
from kotha.cli.options import Field, OnErrors, Page, Paths, Several, TokenizerName, WorkPlace, group
from kotha.cli.terminal import Output, corpus_listeners, report_problems, status
from kotha.i18n.message import Message, Plural

if TYPE_CHECKING:
    from kotha import Tokenizer

Overwrite = Annotated[bool, Parameter(help="Replace an existing tokenizer.")]


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
    """Compare tokenizers on text: tokens per word, bytes per token, unknown tokens, split graphemes, round trip.

    Example: `kotha tokenizer card tok --text stories.jsonl --html card.html`

    Args:
        tokenizers: Tokenizers: files, folders or hub names.
        text: Text to measure on: files, folders or globs.
        caution: For comparison, also train a BPE tokenizer with GPT-2's split pattern and the same vocabulary size.
        html: Output file for the result as an offline HTML page.
    """
    from kotha.api.data import cards_table, compare_tokenizers

    options: Any = {"caution": caution, "field": field, "errors": errors}
    with status(Message("measuring …")), report_problems() as problems:
        found = compare_tokenizers(tokenizers, text, **options, on_problem=problems)
    return Output(found, cards_table(found.found), page=html)


@group
class TokenizerOptions:
    """Options for the tokenizer and its training text."""

    kind: Kind = "unigram"
    """Algorithm: unigram suits most uses, BERT uses wordpiece, and llama.cpp supports unigram and bpe."""
    vocab_size: int = 8192
    """Vocabulary size, including special tokens."""
    split: str | None = None
    """Split pattern for bpe: qwen35 (supported by llama.cpp) or words."""
    level: Level = "codepoint"
    """Unit for char: codepoint or akshara."""
    specials: Annotated[bool, Parameter(negative="--no-specials")] = True
    """Add special tokens; only char can do without them, and `kotha prepare` needs them."""
    field: Field = "text"
    errors: OnErrors = "stop"
    workers: int | None = None
    """Number of processes that read and count the text (default: 1)."""
    on: WorkPlace = None
    overwrite: Overwrite = False


def train(
    paths: Paths,
    /,
    *,
    out: Path,
    options: TokenizerOptions = TokenizerOptions(),  # noqa: B008 - frozen
) -> Output:
    """Train a tokenizer whose tokens respect the boundaries of grapheme clusters.

    With unigram and bpe, a frequent grapheme cluster (akshara), such as ক্ষি, is never split between two tokens.

    Example: `kotha tokenizer train texts --vocab-size 8192 --out tok`

    Args:
        out: Output folder for tokenizer.json.
    """
    from kotha.api.data import train_tokenizer

    with corpus_listeners() as listeners:
        tokenizer = train_tokenizer(paths, out=out, **listeners, **vars(options))
    if tokenizer.vocab_size < options.vocab_size:
        log(
            Message(
                "the text yields only {n:,} of the {asked:,} requested pieces",
                n=tokenizer.vocab_size,
                asked=options.vocab_size,
            )
        )
    return _described(tokenizer, out)


def view(tokenizer: TokenizerName, text: str, /) -> Output:
    """Show how a text is split into tokens; only incomplete characters appear as hex bytes.

    Example: `kotha tokenizer view tok 'নদীর ধারে'`

    Args:
        text: Text to tokenize.
    """
    from kotha.api.data import cut

    found = cut(tokenizer, text)
    tokens = found["tokens"]
    ids = " ".join(str(token["id"]) for token in tokens)
    counted = Plural("{n} token: {ids}", "{n:,} tokens: {ids}", n=len(tokens), ids=ids)
    return Output(found, "│".join(token["text"] for token in tokens), counted)


def import_(source: str, /, *, out: Path, extra_ids: int | None = None, overwrite: Overwrite = False) -> Output:
    """Import a tokenizer from another library, and save it as tokenizer.json.

    Example: `kotha tokenizer import spiece.model --out tok`

    Args:
        source: File (tokenizer.json, spiece.model, vocab.txt or .json), folder or hub name.
        out: Output folder for tokenizer.json.
        extra_ids: Number of sentinel tokens to add to a bare spiece.model (T5 has 100); a folder defines its own.
    """
    from kotha.api.data import keep_tokenizer

    return _described(keep_tokenizer(source, out, extra_ids=extra_ids, overwrite=overwrite), out)


def _described(tokenizer: "Tokenizer", out: Path) -> Output:
    about: dict[str, Any] = {name: getattr(tokenizer, name) for name in ("kind", "vocab_size", "fingerprint")}
    found = {"path": str(out if out.suffix == ".json" else out / FILE_NAME), **about}
    return Output(found, Message("{kind} tokenizer with {vocab_size:,} pieces in {path}", **found))
