"""``kotha tokenizer``: train, compare, view, import."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Paths, TokenizerName, WorkPlace, flag
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import notes, print_json, problems_told, results
from kotha.cli.tokenizer_card import card
from kotha.i18n.message import Message, Plural
from kotha.text.tokenizer.tokenizer import FILE_NAME, Tokenizer, check_free
from kotha.text.tokenizer.trainers import Kind, Level

Overwrite = Annotated[bool, flag("Replace a tokenizer that exists.")]

app = App(name="tokenizer", help="Train, compare, view and import tokenizers.", help_format="plaintext")

app.command(card)


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
    import kotha
    from kotha.text.normalize import choose_rules

    how: Any = {"overwrite": overwrite, "field": field, "errors": errors, "split": split, "level": level}
    how |= {"workers": workers, "on": on}
    with notes().status(said(Message("reading …"))) as status, problems_told() as problems:
        how |= {
            "on_problem": problems,
            "on_progress": lambda stage, *_: status.update(said(Message("{stage} …", stage=stage))),
        }
        rules = choose_rules(rule, no_rule)
        made = kotha.train_tokenizer(paths, kind=kind, vocab_size=vocab_size, out=out, rules=rules, **how)
    if made.vocab_size < vocab_size:
        tell(
            Message(
                "the text fills {n:,} of {asked:,} pieces",
                n=made.vocab_size,
                asked=vocab_size,
            )
        )
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
    from kotha.text.tokenizer.importers import import_tokenizer
    from kotha.text.tokenizer.view import view as view_tokens

    loaded = import_tokenizer(tokenizer)
    tokens = view_tokens(loaded, text)
    if as_json:
        print_json({"tokens": [vars(token) for token in tokens], "text": loaded.decode(token.id for token in tokens)})
        return
    console = results()
    console.print("│".join(token.text for token in tokens), markup=False)
    ids = " ".join(str(token.id) for token in tokens)
    console.print(said(Plural("{n} token: {ids}", "{n:,} tokens: {ids}", n=len(tokens), ids=ids)))


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
    from kotha.text.tokenizer.importers import import_tokenizer

    check_free(out, overwrite)
    tokenizer = import_tokenizer(source, extra_ids=extra_ids)
    tokenizer.save(out)
    _tell(tokenizer, out, as_json)


def _tell(made: Tokenizer, out: Path, as_json: bool) -> None:
    path = str(out if out.suffix == ".json" else out / FILE_NAME)
    if as_json:
        about = {name: getattr(made, name) for name in ("kind", "vocab_size", "fingerprint")}
        print_json({"path": path, **about})
    else:
        results().print(
            said(
                Message(
                    "{kind} tokenizer with {vocab_size:,} pieces in {path}",
                    kind=made.kind,
                    vocab_size=made.vocab_size,
                    path=path,
                )
            )
        )
