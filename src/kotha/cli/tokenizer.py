"""``kotha tokenizer``: train, compare, view, import."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from kotha.api.data import FILE_NAME, Kind, Level
from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Paths, TokenizerName, WorkPlace, flag, page
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import notes, problems_told, show
from kotha.i18n.message import Message, Plural

if TYPE_CHECKING:
    from kotha import Tokenizer

Overwrite = Annotated[bool, flag("Replace a tokenizer that exists.")]

app = App(name="tokenizer", help="Train, compare, view and import tokenizers.", help_format="plaintext")


@app.command
def card(
    tokenizers: Annotated[tuple[str, ...], flag("Tokenizers: files, folders, or hub names.")],
    /,
    *,
    text: Annotated[tuple[str, ...], flag("The text to measure on: files, folders, globs.", consume_multiple=True)],
    caution: Annotated[bool, flag("Add a GPT-2-pattern BPE of the same size, as a caution.", negative=None)] = True,
    caution_text: Annotated[
        tuple[str, ...],
        flag(
            "What the cautionary BPE is trained on; by default --text itself, which flatters it.", consume_multiple=True
        ),
    ] = (),
    html: Annotated[Path | None, page("Also write one offline HTML page.")] = None,
    field: Field = "text",
    errors: OnErrors = "stop",
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Compare tokenizers on a text: tokens a word, bytes a token, unknowns, letters cut in two, round trip."""
    from kotha.api.data import cards_table, compare_tokenizers

    how: Any = {"caution": caution, "caution_text": caution_text, "field": field, "errors": errors}
    with notes().status(said(Message("measuring …"))), problems_told() as problems:
        found = compare_tokenizers(tokenizers, text, **how, on_problem=problems)
    if html is not None:
        found.save(html)
        tell(Message("page in {path}", path=html))
    show(found, as_json, cards_table(found.found))


@app.command
def train(
    paths: Paths,
    /,
    *,
    out: Annotated[Path, flag("Folder for tokenizer.json.")],
    kind: Annotated[
        Kind, flag("unigram is the best for most; wordpiece is BERT's; unigram and bpe open in llama.cpp.")
    ] = "unigram",
    vocab_size: Annotated[int, flag("Pieces, special tokens included.")] = 8192,
    split: Annotated[str | None, flag("For bpe: qwen35 (opens in llama.cpp) or words.")] = None,
    level: Annotated[Level, flag("For char: codepoint or akshara.")] = "codepoint",
    rule: Annotated[tuple[str, ...], flag("Switch a normalization rule on: danda, bangla_digits, quotes, …")] = (),
    no_rule: Annotated[tuple[str, ...], flag("Switch a normalization rule off: joiners, ya_phala, …")] = (),
    field: Field = "text",
    errors: OnErrors = "stop",
    workers: Annotated[int | None, flag("Processes that count the text; by default one.")] = None,
    on: WorkPlace = None,
    overwrite: Overwrite = False,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Train a tokenizer on text; its pieces respect letters."""
    from kotha.api.data import choose_rules, train_tokenizer

    how: Any = {"overwrite": overwrite, "field": field, "errors": errors, "split": split, "level": level}
    how |= {"workers": workers, "on": on, "rules": choose_rules(rule, no_rule), "kind": kind, "vocab_size": vocab_size}
    with notes().status(said(Message("reading …"))) as status, problems_told() as problems:
        how["on_progress"] = lambda stage, *_: status.update(said(Message("{stage} …", stage=stage)))
        made = train_tokenizer(paths, out=out, on_problem=problems, **how)
    if made.vocab_size < vocab_size:
        tell(Message("the text fills {n:,} of {asked:,} pieces", n=made.vocab_size, asked=vocab_size))
    _tell(made, out, as_json)


@app.command
def view(
    tokenizer: TokenizerName,
    text: Annotated[str, flag("The text to cut.")],
    /,
    *,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Show how a text is cut: letters as letters, hex only for part of one."""
    from kotha.api.data import cut

    found = cut(tokenizer, text)
    tokens = found["tokens"]
    ids = " ".join(str(token["id"]) for token in tokens)
    counted = Plural("{n} token: {ids}", "{n:,} tokens: {ids}", n=len(tokens), ids=ids)
    show(found, as_json, "│".join(token["text"] for token in tokens), counted)


@app.command(name="import")
def import_(
    source: Annotated[str, flag("tokenizer.json, spiece.model, vocab.txt or .json, a folder, or a hub name.")],
    /,
    *,
    out: Annotated[Path, flag("Folder for tokenizer.json.")],
    extra_ids: Annotated[
        int | None, flag("Sentinels after a bare spiece.model's pieces: T5 has 100. A folder says its own.")
    ] = None,
    overwrite: Overwrite = False,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Open a tokenizer from elsewhere and keep it as tokenizer.json."""
    from kotha.api.data import keep_tokenizer

    _tell(keep_tokenizer(source, out, extra_ids=extra_ids, overwrite=overwrite), out, as_json)


def _tell(made: "Tokenizer", out: Path, as_json: bool) -> None:
    about: dict[str, Any] = {name: getattr(made, name) for name in ("kind", "vocab_size", "fingerprint")}
    found = {"path": str(out if out.suffix == ".json" else out / FILE_NAME), **about}
    show(found, as_json, Message("{kind} tokenizer with {vocab_size:,} pieces in {path}", **found))
