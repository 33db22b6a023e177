"""``kotha demo``: the whole way, on the built-in corpus, with no network."""

import itertools
import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding

from kotha.cli.terminal import notes, progress, results, table
from kotha.errors import UsageError
from kotha.files import whole_file, write_whole
from kotha.page import Page
from kotha.text import card
from kotha.text.prepare import PrepareOptions, PrepareReport, prepare
from kotha.text.stories import Document, floor_bits_per_byte, stories
from kotha.text.tokenizer import Tokenizer
from kotha.text.trainers import train
from kotha.text.view import view

_SAMPLE_WORDS = 28


def demo(
    *,
    out: Annotated[Path, Parameter(help="Folder for everything that is made.")] = Path("kotha-demo"),
    documents: Annotated[int, Parameter(help="How many stories to write.")] = 3000,
    vocab_size: Annotated[int, Parameter(help="Pieces of the tokenizer.")] = 4096,
    seed: Annotated[int, Parameter(help="Which stories.")] = 0,
) -> None:
    """Write Bangla stories, learn a tokenizer from them, cut them into shards, and report.

    It goes as far as text can go; its last words say how to train a model on the shards.
    """
    if documents < 100:
        raise UsageError(f"--documents {documents}: a tokenizer needs more to learn from; give at least 100")
    console = results()
    written = _write_stories(console, out / "stories.jsonl", documents, seed)
    tokenizer = _learn_tokenizer(console, out / "tokenizer", written, vocab_size)
    shards = _make_shards(console, out, tokenizer)
    cards = _compare(console, tokenizer, written)
    page = _page(written, tokenizer, shards, cards)
    write_whole(out / "report.html", page)
    folder, kotha = shlex.quote(str(out)), _program()
    console.print(f"\nReport: [bold]{out / 'report.html'}[/] (open it in a browser)\n\nThree things to try next:")
    console.print(f"  {kotha} tokenizer view {folder}/tokenizer 'আমার সোনার বাংলা'", markup=False)
    console.print(f"  {kotha} corpus stories --documents 3 --seed 7", markup=False)
    console.print(f"  {kotha} train {folder}/data --preset pocket --steps 300 --out {folder}/run", markup=False)


def _program() -> str:
    """How this program is called from here: by name, or by path where its environment is not switched on."""
    if shutil.which("kotha"):
        return "kotha"
    path = Path(sys.executable).with_name("kotha")
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))


def _write_stories(console: Console, path: Path, documents: int, seed: int) -> list[Document]:
    _step(console, 1, "Stories", "original Bangla, from a grammar; the same seed gives the same ones")
    written = []
    with whole_file(path) as file, progress() as advance:
        for document in itertools.islice(stories(seed), documents):
            written.append(document)
            row = {"text": document.text, "kind": document.kind, "log_probability": document.log_probability}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            advance("writing", len(written), documents)
    shown = next(document for document in written if document.kind == "story")
    console.print("The first of them:\n")
    console.print(Padding(shown.text, (0, 0, 1, 2)), markup=False)
    size = sum(len(document.text.encode()) for document in written)
    floor = floor_bits_per_byte(written)
    console.print(
        f"{documents:,} documents, {size:,} bytes. No model can do better than {floor:.3f} bits per byte on them."
    )
    return written


def _learn_tokenizer(console: Console, path: Path, written: list[Document], vocab_size: int) -> Tokenizer:
    _step(console, 2, "Tokenizer", "a unigram whose pieces are whole letters")
    with notes().status("learning …"):
        tokenizer = train((document.text for document in written), "unigram", vocab_size)
    tokenizer.save(path)
    pieces = "│".join(token.text for token in view(tokenizer, _sample(written)))
    console.print(f"{tokenizer.vocab_size:,} pieces. One sentence, cut:")
    console.print(pieces, markup=False)
    return tokenizer


def _make_shards(console: Console, out: Path, tokenizer: Tokenizer) -> PrepareReport:
    _step(console, 3, "Shards", "token ids on disk, ready to be memory-mapped; each file known by its hash")
    options = PrepareOptions(overwrite=True)
    with progress() as advance:
        report = prepare([out / "stories.jsonl"], tokenizer, out / "data", options, on_progress=advance)
    rows = _shard_rows(report)
    console.print(table("", ["", "train", "validation"], rows))
    console.print(f"left out: {report.duplicates:,} duplicates, {report.leaked:,} near-copies of validation documents")
    return report


def _compare(console: Console, tokenizer: Tokenizer, written: list[Document]) -> list[card.Card]:
    _step(console, 4, "Report card", "beside what the best-known pattern does to Bangla")
    texts = [document.text for document in written]
    held, seen = texts[: len(texts) // 10], texts[len(texts) // 10 :]
    with notes().status("measuring …"):
        caution = card.train_gpt2_style(seen, tokenizer.vocab_size)
        cards = [card.measure("kotha unigram", tokenizer, held), card.measure("GPT-2 pattern", caution, held)]
    header = [title for _, title in card.COLUMNS]
    console.print(table("", header, [card.cells(entry) for entry in cards], card.marks(cards)))
    return cards


def _page(written: list[Document], tokenizer: Tokenizer, shards: PrepareReport, cards: list[card.Card]) -> str:
    page = Page("কথা: first steps", "From stories to tokens, on this machine, with no network.")
    page.heading("Stories")
    for kind in ("story", "news", "entry"):
        page.story(next(document.text for document in written if document.kind == kind))
    floor = floor_bits_per_byte(written)
    page.paragraph(
        f"{len(written):,} documents. The grammar knows the probability of every choice it made, so the floor is "
        f"known: {floor:.3f} bits per byte. No model can do better on fresh stories, on average."
    )
    page.heading("Cut into pieces")
    page.pieces((token.text, token.is_part) for token in view(tokenizer, _sample(written)))
    page.heading("Shards")
    page.table(["", "train", "validation"], _shard_rows(shards), {})
    page.heading("Report card")
    page.table([title for _, title in card.COLUMNS], [card.cells(entry) for entry in cards], card.marks(cards))
    page.paragraph("A cut inside a letter separates a vowel sign, or half of a conjunct, from its letter.")
    return page.html("Made by `kotha demo`. ␣ is a space, ◌ a sign without its letter.")


def _shard_rows(report: PrepareReport) -> list[list[str]]:
    return [
        ["documents", f"{report.train_documents:,}", f"{report.validation_documents:,}"],
        ["tokens", f"{report.train_tokens:,}", f"{report.validation_tokens:,}"],
        ["bytes", f"{report.train_bytes:,}", f"{report.validation_bytes:,}"],
    ]


def _sample(written: list[Document]) -> str:
    first = next(document for document in written if document.kind == "story")
    return " ".join(first.text.split()[:_SAMPLE_WORDS])


def _step(console: Console, number: int, name: str, about: str) -> None:
    console.print(f"\n[bold green]{number}. {name}[/]  [dim]{about}[/]")
