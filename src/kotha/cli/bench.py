"""``kotha bench``: this machine's speed beside Hugging Face's implementation, and how the cost of training grows."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from kotha.cli.flags import Json, flag, page
from kotha.cli.terminal import print_json, print_table, progress

_DOCUMENTS, _PIECES = 400, 2000


def bench(
    what: Annotated[Literal["train", "generate", "tokenize", "growth"], flag("What to measure.")],
    source: Annotated[str | None, flag("A run to generate with, or a text to tokenize; left out: new ones.")] = None,
    /,
    *,
    preset: Annotated[str, flag("To train, and to generate without a run: a preset's exact name.")] = "pocket",
    batch_size: Annotated[int, flag("Sequences in a step of training; texts that are generated together.")] = 8,
    precision: Annotated[Literal["auto", "float32", "bfloat16"], flag("To train: type of the products.")] = "auto",
    tokens: Annotated[int, flag("To generate: tokens of each text.")] = 64,
    weights: Annotated[Literal["float32", "bfloat16", "int8"], flag("To generate: their type.")] = "float32",
    tokenizer: Annotated[str | None, flag("To tokenize: a file, folder or hub name; left out: a new one.")] = None,
    rounds: Annotated[int, flag("Turns of each side; the median counts.")] = 5,
    html: Annotated[Path | None, page("For growth: the page to write.")] = None,
    as_json: Json = False,
) -> None:
    """Measure this machine, ours and transformers turn by turn on the same work, and print the ratio.

    `kotha bench growth` measures how speed and memory of training change with width, depth, context and vocabulary,
    beside what `kotha plan` foretells: a few minutes, each model in a process of its own.
    """
    if what == "growth":
        _growth(precision, html, as_json)
        return
    import kotha
    from kotha.bench import sides
    from kotha.evaluate.tables import Table
    from kotha.model.gpt import GPT
    from kotha.model.presets import preset as named
    from kotha.text.corpus.documents import read_documents
    from kotha.text.stories.corpus import stories
    from kotha.text.tokenizer.importers import import_tokenizer
    from kotha.text.tokenizer.trainers import train
    from kotha.train.device.precision import choose_arithmetic

    how = choose_arithmetic(precision)
    with progress() as tell:
        if what == "train":
            found = sides.bench_training(sides.gpt_only(named(preset)), batch_size, how, rounds, tell)
        elif what == "generate":
            model = kotha.load(source).gpt[0] if source else GPT(sides.gpt_only(named(preset))).to(how.device)
            found = sides.bench_writing(model, weights, batch_size, tokens, rounds, tell)
        else:
            documents: Any = read_documents([source]) if source else stories()
            texts = [document.text for document in islice(documents, _DOCUMENTS)]
            made = import_tokenizer(tokenizer) if tokenizer else train(texts, vocab_size=_PIECES)
            found = sides.bench_tokenizing(made, texts, rounds, tell)
    if as_json:
        print_json({**vars(found), "sides": found.sides()})
        return
    header = ["", f"{found.unit} a second", "slowest", "fastest", "kotha is so many times as fast"]
    rows = [[name, *(f"{figure:,.4g}" for figure in side.values())] for name, side in found.sides().items()]
    print_table(Table(found.title, header, rows, found.remarks))


def _growth(precision: str, html: Path | None, as_json: bool) -> None:
    from kotha.bench.growth import measure_growth
    from kotha.evaluate.tables import Table
    from kotha.files import write_page
    from kotha.wording import size

    with progress() as tell:
        found = measure_growth(precision, tell)
    if html is not None:
        write_page(html, found.page())
    if as_json:
        print_json(found.to_dict())
        return
    header = ["", "tokens a second", "foretold", "memory", "foretold"]
    rows = [
        [
            f"{cost.grown} {cost.size:,}",
            f"{cost.tokens_per_second:,.4g}",
            f"{cost.foretold_tokens_per_second:,.4g}",
            size(cost.memory_bytes),
            size(cost.foretold_memory_bytes),
        ]
        for cost in found.costs
    ]
    print_table(Table("how the cost of training grows", header, rows, [f"Page: {html}"] if html else []))
