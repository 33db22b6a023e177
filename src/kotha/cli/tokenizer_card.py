"""``kotha tokenizer card``: tokenizers side by side on a text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, flag, page
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import notes, print_json, problems_told, results, table
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.text.corpus.documents import read_documents
from kotha.text.corpus.problems import Errors


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
    from kotha.report.tokenizer_card import cards_page
    from kotha.storage.atomic import write_page
    from kotha.text.tokenizer import card as cards_module
    from kotha.text.tokenizer.importers import import_tokenizer

    documents = list(_texts(text, field, errors))
    if not documents:
        raise UsageError("--text {text}: no documents there", text=" ".join(text))
    loaded = {_short(name, tokenizers): import_tokenizer(name) for name in tokenizers}
    with notes().status(said(Message("measuring …"))):
        if caution:
            size = max(tokenizer.vocab_size for tokenizer in loaded.values())
            train_on = _texts(caution_text, field, errors) if caution_text else documents
            loaded["GPT-2 pattern (a caution)"] = cards_module.train_gpt2_style(train_on, size)
        cards = [cards_module.measure(name, tokenizer, documents) for name, tokenizer in loaded.items()]
    if html is not None:
        sample = " ".join(documents[0].split()[:60])
        write_page(html, cards_page(cards, loaded, sample, ", ".join(text)))
        tell(Message("page in {path}", path=html))
    if as_json:
        first, *others = cards
        print_json({**vars(first), "compared_with": [vars(other) for other in others]})
        return
    header = [title for _, title in cards_module.COLUMNS]
    rows = [cards_module.cells(entry) for entry in cards]
    results().print(table(Message("on {n:,} words", n=cards[0].words), header, rows, cards_module.marks(cards)))


def _texts(paths: tuple[str, ...], field: str, errors: Errors) -> Iterator[str]:
    with problems_told() as problems:
        for document in read_documents(paths, field=field, errors=errors, on_problem=problems):
            yield document.text


def _short(name: str, names: tuple[str, ...]) -> str:
    """The shortest way to call a tokenizer that tells it from the others."""
    path = Path(name)
    short = path.parent.name if path.suffix == ".json" and path.parent.name else path.name
    return short if sum(Path(other).name == Path(name).name for other in names) == 1 else name
