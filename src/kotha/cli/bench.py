"""``kotha bench``: this machine's speed beside Hugging Face's implementation, and how the cost of training grows."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from kotha.cli.flags import Json, flag, page
from kotha.cli.terminal import print_json, print_table, progress
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text
from kotha.i18n.numbers import Size

_DOCUMENTS, _PIECES = 400, 2000
# Which flags belong to which work.
_FITTING: dict[Text, tuple[str, ...]] = {
    Message("a run or a text"): ("generate", "tokenize"),
    "--preset": ("train", "generate"),
    "--batch-size": ("train", "generate"),
    "--precision": ("train", "growth"),
    "--tokens": ("generate",),
    "--weights": ("generate",),
    "--tokenizer": ("tokenize",),
    "--rounds": ("train", "generate", "tokenize"),
    "--html": ("growth",),
}


def bench(
    what: Annotated[Literal["train", "generate", "tokenize", "growth"], flag("What to measure.")],
    source: Annotated[str | None, flag("A run to generate with, or a text to tokenize; left out: new ones.")] = None,
    /,
    *,
    preset: Annotated[str | None, flag("To train, and to generate without a run; left out: pocket.")] = None,
    batch_size: Annotated[int | None, flag("Sequences in a step, or texts generated together; left out: 8.")] = None,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"] | None, flag("To train: type of the products; left out: auto.")
    ] = None,
    tokens: Annotated[int | None, flag("To generate: tokens of each text; left out: 64.")] = None,
    weights: Annotated[
        Literal["float32", "bfloat16", "int8"] | None, flag("To generate: their type; left out: float32.")
    ] = None,
    tokenizer: Annotated[str | None, flag("To tokenize: a file, folder or hub name; left out: a new one.")] = None,
    rounds: Annotated[int | None, flag("Turns of each side; the median counts; left out: 5.")] = None,
    html: Annotated[Path | None, page("For growth: the page to write.")] = None,
    as_json: Json = False,
) -> None:
    """Measure this machine, ours and transformers turn by turn on the same work, and print the ratio.

    `kotha bench growth` measures how speed and memory of training change with width, depth, context and vocabulary,
    beside what `kotha plan` foretells: a few minutes, each model in a process of its own.
    """
    given = (source, preset, batch_size, precision, tokens, weights, tokenizer, rounds, html)
    for name, value in zip(_FITTING, given, strict=True):
        if value is not None and what not in _FITTING[name]:
            raise UsageError(
                "{name} is for bench {fitting}, and this is bench {what}",
                name=name,
                fitting=list(_FITTING[name]),
                what=what,
            )
    if what == "growth":
        _growth(precision or "auto", html, as_json)
        return
    if what == "generate" and source is not None and preset is not None:
        raise UsageError("a run and --preset are two models; give one of them")
    preset, batch_size, rounds = preset or "pocket", _or(batch_size, 8), _or(rounds, 5)
    import kotha
    from kotha.api.bench import sides
    from kotha.model.gpt import GPT
    from kotha.model.presets import preset as named
    from kotha.report.table import Table
    from kotha.text.corpus.documents import read_documents
    from kotha.text.stories.corpus import stories
    from kotha.text.tokenizer.importers import import_tokenizer
    from kotha.text.tokenizer.trainers import train
    from kotha.training.device import choose_arithmetic

    how = choose_arithmetic(precision or "auto")
    with progress() as tell:
        if what == "train":
            found = sides.bench_training(sides.gpt_only(named(preset)), batch_size, how, rounds, tell)
        elif what == "generate":
            model = kotha.load(source).gpt[0] if source else GPT(sides.gpt_only(named(preset))).to(how.device)
            found = sides.bench_writing(model, weights or "float32", batch_size, _or(tokens, 64), rounds, tell)
        else:
            documents: Any = read_documents([source]) if source else stories()
            texts = [document.text for document in islice(documents, _DOCUMENTS)]
            made = import_tokenizer(tokenizer) if tokenizer else train(texts, vocab_size=_PIECES)
            found = sides.bench_tokenizing(made, texts, rounds, tell)
    if as_json:
        print_json({**vars(found), "sides": found.sides()})
        return
    header: list[Text] = [
        "",
        Message("{unit} a second", unit=found.unit),
        Message("slowest"),
        Message("fastest"),
        Message("kotha is so many times as fast"),
    ]
    rows: list[list[Text]] = [
        [name, *(f"{figure:,.4g}" for figure in side.values())] for name, side in found.sides().items()
    ]
    print_table(Table(found.title, header, rows, found.remarks))


def _or(given: int | None, usual: int) -> int:
    return usual if given is None else given


def _growth(precision: str, html: Path | None, as_json: bool) -> None:
    from kotha.api.bench.growth import measure_growth
    from kotha.report.table import Table
    from kotha.storage.atomic import write_page

    with progress() as tell:
        found = measure_growth(precision, tell)
    if html is not None:
        write_page(html, found.page())
    if as_json:
        print_json(found.to_dict())
        return
    header: list[Text] = ["", Message("tokens a second"), Message("foretold"), Message("memory"), Message("foretold")]
    rows: list[list[Text]] = [
        [
            f"{cost.grown} {cost.size:,}",
            f"{cost.tokens_per_second:,.4g}",
            f"{cost.foretold_tokens_per_second:,.4g}",
            Message("{size}", size=Size(cost.memory_bytes)),
            Message("{size}", size=Size(cost.foretold_memory_bytes)),
        ]
        for cost in found.costs
    ]
    print_table(
        Table(
            Message("how the cost of training grows"),
            header,
            rows,
            [Message("Page: {html}", html=html)] if html else [],
        )
    )
