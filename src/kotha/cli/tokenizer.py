"""``kotha tokenizer``: train, compare, view, import."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from kotha.cli.terminal import Problems, notes, print_json, results, table
from kotha.errors import UsageError
from kotha.text.corpus.documents import read_documents
from kotha.text.corpus.problems import Errors
from kotha.text.tokenizer.trainers import Kind, Level

app = App(name="tokenizer", help="Train, compare, view and import tokenizers.", help_format="plaintext")

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")]
Field = Annotated[str, Parameter(help="Field or column that holds the text.")]
OnErrors = Annotated[Errors, Parameter(help="What happens to a document that cannot be read.")]


@app.command
def train(
    paths: Annotated[tuple[str, ...], Parameter(help="Files, folders, globs, - or hf:owner/name.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for tokenizer.json.")],
    kind: Annotated[
        Kind, Parameter(help="unigram is the best for most; wordpiece is BERT's; unigram and bpe open in llama.cpp.")
    ] = "unigram",
    vocab_size: Annotated[int, Parameter(help="Pieces, special tokens included.")] = 8192,
    split: Annotated[str | None, Parameter(help="For bpe: qwen35 (opens in llama.cpp) or words.")] = None,
    level: Annotated[Level, Parameter(help="For char: codepoint or akshara.")] = "codepoint",
    rule: Annotated[
        tuple[str, ...], Parameter(help="Switch a normalization rule on: danda, bangla_digits, quotes, …", negative="")
    ] = (),
    no_rule: Annotated[
        tuple[str, ...], Parameter(help="Switch a normalization rule off: joiners, ya_phala, …", negative="")
    ] = (),
    field: Field = "text",
    errors: OnErrors = "stop",
    as_json: Json = False,
) -> None:
    """Train a tokenizer on text; its pieces respect letters."""
    from kotha.text.normalize import choose_rules
    from kotha.text.tokenizer.trainers import train as train_tokenizer

    rules = choose_rules(rule, no_rule)
    with notes().status("reading …") as status:
        tokenizer = train_tokenizer(
            _texts(paths, field, errors),
            kind,
            vocab_size,
            split=split,
            level=level,
            rules=rules,
            on_progress=lambda stage, done, total: status.update(f"{stage} …"),
        )
    path = tokenizer.save(out)
    if as_json:
        print_json(
            {"path": str(path), "kind": kind, "vocab_size": tokenizer.vocab_size, "fingerprint": tokenizer.fingerprint}
        )
        return
    if tokenizer.vocab_size < vocab_size:
        print(f"kotha: the text fills {tokenizer.vocab_size:,} of {vocab_size:,} pieces", file=sys.stderr)
    results().print(f"{kind} tokenizer with {tokenizer.vocab_size:,} pieces in {path}")


@app.command
def card(
    tokenizers: Annotated[tuple[str, ...], Parameter(help="Tokenizers: files, folders, or hub names.")],
    /,
    *,
    text: Annotated[
        tuple[str, ...],
        Parameter(help="The text to measure on: files, folders, globs.", negative="", consume_multiple=True),
    ],
    caution: Annotated[bool, Parameter(help="Add a GPT-2-pattern BPE of the same size, as a caution.")] = True,
    caution_text: Annotated[
        tuple[str, ...],
        Parameter(
            help="What the cautionary BPE is trained on; by default --text itself, which flatters it.",
            negative="",
            consume_multiple=True,
        ),
    ] = (),
    html: Annotated[Path | None, Parameter(help="Also write one offline HTML page.")] = None,
    field: Field = "text",
    errors: OnErrors = "stop",
    as_json: Json = False,
) -> None:
    """Compare tokenizers on a text: tokens a word, bytes a token, unknowns, letters cut in two, round trip."""
    from kotha.files import write_whole
    from kotha.text.tokenizer import card as cards_module
    from kotha.text.tokenizer.importers import import_tokenizer

    documents = list(_texts(text, field, errors))
    if not documents:
        raise UsageError(f"--text {' '.join(text)}: no documents there")
    loaded = {_short(name, tokenizers): import_tokenizer(name) for name in tokenizers}
    with notes().status("measuring …"):
        if caution:
            size = max(tokenizer.vocab_size for tokenizer in loaded.values())
            train_on = _texts(caution_text, field, errors) if caution_text else documents
            loaded["GPT-2 pattern (a caution)"] = cards_module.train_gpt2_style(train_on, size)
        cards = [cards_module.measure(name, tokenizer, documents) for name, tokenizer in loaded.items()]
    if html is not None:
        sample = " ".join(documents[0].split()[:60])
        write_whole(html, cards_module.cards_page(cards, loaded, sample, ", ".join(text)))
        print(f"kotha: page in {html}", file=sys.stderr)
    if as_json:
        first, *others = cards
        print_json({**vars(first), "compared_with": [vars(other) for other in others]})
        return
    header = [title for _, title in cards_module.COLUMNS]
    rows = [cards_module.cells(entry) for entry in cards]
    results().print(table(f"on {cards[0].words:,} words", header, rows, cards_module.marks(cards)))


@app.command
def view(
    tokenizer: Annotated[str, Parameter(help="A tokenizer: file, folder, or hub name.")],
    text: Annotated[str, Parameter(help="The text to cut.")],
    /,
    *,
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
    console.print(f"{len(tokens)} tokens: {' '.join(str(token.id) for token in tokens)}")


@app.command(name="import")
def import_(
    source: Annotated[
        str, Parameter(help="tokenizer.json, spiece.model, vocab.txt, vocab.json, a folder, or a hub name.")
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for tokenizer.json.")],
    extra_ids: Annotated[
        int | None, Parameter(help="Sentinels after a bare spiece.model's pieces: T5 has 100. A folder says its own.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Open a tokenizer from elsewhere and keep it as tokenizer.json."""
    from kotha.text.tokenizer.importers import import_tokenizer

    tokenizer = import_tokenizer(source, extra_ids=extra_ids)
    path = tokenizer.save(out)
    if as_json:
        print_json(
            {
                "path": str(path),
                "kind": tokenizer.kind,
                "vocab_size": tokenizer.vocab_size,
                "fingerprint": tokenizer.fingerprint,
            }
        )
        return
    results().print(f"{tokenizer.kind} tokenizer with {tokenizer.vocab_size:,} pieces in {path}")


def _texts(paths: tuple[str, ...], field: str, errors: Errors) -> Iterator[str]:
    problems = Problems()
    for document in read_documents(paths, field=field, errors=errors, on_problem=problems):
        yield document.text
    problems.summarize()


def _short(name: str, names: tuple[str, ...]) -> str:
    """The shortest way to call a tokenizer that tells it from the others."""
    path = Path(name)
    short = path.parent.name if path.suffix == ".json" and path.parent.name else path.name
    return short if sum(Path(other).name == Path(name).name for other in names) == 1 else name
