"""``kotha demo``: the whole way, on the built-in corpus, with no network."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding

import kotha
from kotha.cli.demo_page import PAGES, Demo, Told, demo_page, next_steps, sample_of, shard_rows
from kotha.cli.stopping import StoppedError
from kotha.cli.terminal import notes, progress, results, table
from kotha.cli.training_display import TrainingDisplay
from kotha.errors import UsageError
from kotha.files import write_whole
from kotha.text.prepare import PrepareReport
from kotha.text.stories.corpus import Story, floor_bits_per_byte
from kotha.text.tokenizer import card
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view
from kotha.train.show.report import read_record

if TYPE_CHECKING:
    from kotha.api.model import LanguageModel

TRAIN, HELD_OUT = "stories.jsonl", "held-out.jsonl"
# One held-out document for so many to learn from.
_LEARNED_PER_HELD_OUT = 20
# How it writes: mostly what it finds likely. A model that has learned for two minutes should not be daring.
_WRITING: dict[str, Any] = {"temperature": 0.3, "top_k": 10}
_TOKENS, _TOKENS_ON_THE_WAY = 150, 40
# How many tokens it adds while its attention is watched.
_LOOKED_AT = 12
# Past the title, which by itself looks like a text's last sentence.
_PROMPT_WORDS = 8


def demo(
    *,
    out: Annotated[Path, Parameter(help="Folder for everything that is made.")] = Path("kotha-demo"),
    documents: Annotated[int, Parameter(help="How many stories to write.")] = 3000,
    vocab_size: Annotated[int, Parameter(help="Pieces of the tokenizer.")] = 8192,
    minutes: Annotated[float, Parameter(help="How long to train, about.")] = 2.0,
    seed: Annotated[int, Parameter(help="Which stories, and which first weights.")] = 0,
) -> None:
    """Write Bangla stories, learn a tokenizer from them, train a model on them, and let it write its own."""
    if documents < 100:
        raise UsageError(f"--documents {documents}: a tokenizer needs more to learn from; give at least 100")
    if minutes <= 0:
        raise UsageError(f"--minutes {minutes:g}: a model needs some time to learn")
    console = results()
    written, held_out = _write_stories(console, out, documents, seed)
    tokenizer = _learn_tokenizer(console, out, written, vocab_size)
    shards = _make_shards(console, out, tokenizer)
    cards = _compare(console, tokenizer, written, held_out)
    floor = floor_bits_per_byte(held_out)
    prompts = [_beginning(_first(held_out, kind).text) for kind in ("story", "news", "entry")]
    before = _train(console, out, minutes, seed, floor, prompts[0])
    model = kotha.load(out / "run")
    told = _let_it_write(console, model, prompts, written)
    _look_inside(console, model, out, prompts[0])
    made = Demo(written, tokenizer, shards, cards, read_record(out / "run"), prompts, before, told)
    write_whole(out / "report.html", demo_page(made, str(out), _program()))
    console.print(f"\nReport: [bold]{out / 'report.html'}[/] (open it in a browser)\n\nThree things to try next:")
    for _, command in next_steps(str(out), _program())[:3]:
        console.print(f"  {command}", markup=False, soft_wrap=True)


def _program() -> str:
    """How this program is called from here: by name, or by path where its environment is not switched on."""
    if shutil.which("kotha"):
        return "kotha"
    path = Path(sys.executable).with_name("kotha")
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))


def _write_stories(console: Console, out: Path, documents: int, seed: int) -> tuple[list[Story], list[Story]]:
    """Stories to learn from, and others that are held out; both from the same grammar, by different seeds."""
    _step(console, 1, "Stories", "original Bangla, from a grammar; the same seed gives the same ones")
    counts = {TRAIN: documents, HELD_OUT: max(10, documents // _LEARNED_PER_HELD_OUT)}
    found: dict[str, list[Story]] = {}
    with progress() as advance:
        for turn, (name, count) in enumerate(counts.items()):
            kotha.write_stories(out / name, count, seed=2 * seed + turn, on_progress=advance)
            with (out / name).open(encoding="utf-8") as lines:
                found[name] = [Story(**json.loads(line)) for line in lines]
    console.print("The first of them:\n")
    console.print(Padding(_first(found[TRAIN], "story").text, (0, 0, 1, 2)), markup=False)
    size = sum(len(document.text.encode()) for document in found[TRAIN])
    console.print(f"{documents:,} documents, {size:,} bytes; {counts[HELD_OUT]:,} more are held out.")
    return found[TRAIN], found[HELD_OUT]


def _learn_tokenizer(console: Console, out: Path, written: list[Story], vocab_size: int) -> Tokenizer:
    _step(console, 2, "Tokenizer", "a unigram whose pieces are whole letters")
    with notes().status("learning …"):
        tokenizer = kotha.train_tokenizer(out / TRAIN, vocab_size=vocab_size, out=out / "tokenizer")
    pieces = "│".join(token.text for token in view(tokenizer, sample_of(written)))
    console.print(f"{tokenizer.vocab_size:,} pieces. One sentence, cut:")
    console.print(pieces, markup=False)
    return tokenizer


def _make_shards(console: Console, out: Path, tokenizer: Tokenizer) -> PrepareReport:
    _step(console, 3, "Shards", "token ids on disk, ready to be memory-mapped; each file known by its hash")
    with progress() as advance:
        report = kotha.prepare(
            out / TRAIN, tokenizer, out / "data", on_progress=advance, validation=out / HELD_OUT, overwrite=True
        )
    console.print(table("", ["", "train", "validation"], shard_rows(report)))
    console.print(f"left out: {report.duplicates:,} duplicates, {report.leaked:,} near-copies of validation documents")
    return report


def _compare(console: Console, tokenizer: Tokenizer, written: list[Story], held_out: list[Story]) -> list[card.Card]:
    _step(console, 4, "Report card", "beside what the best-known pattern does to Bangla")
    held = [document.text for document in held_out]
    with notes().status("measuring …"):
        caution = card.train_gpt2_style([document.text for document in written], tokenizer.vocab_size)
        cards = [card.measure("kotha unigram", tokenizer, held), card.measure("GPT-2 pattern", caution, held)]
    header = [title for _, title in card.COLUMNS]
    console.print(table("", header, [card.cells(entry) for entry in cards], card.marks(cards)))
    return cards


def _train(console: Console, out: Path, minutes: float, seed: int, floor: float, prompt: str) -> str:
    """Train, and give what the model wrote before its first step."""
    from kotha.generate.plain import write
    from kotha.runs import RunFolder
    from kotha.text.shards import Dataset
    from kotha.train.settings import Request
    from kotha.train.start import train_run

    _step(console, 5, "Training", "a small GPT, on this machine; below, what it writes as it learns")
    data, run = Dataset(out / "data"), out / "run"
    shutil.rmtree(run, ignore_errors=True)

    def sample(trained: Any) -> str:
        return write(trained, data.tokenizer, prompt, tokens=_TOKENS_ON_THE_WAY, **_WRITING)

    before: list[str] = []
    with TrainingDisplay() as display:
        summary = train_run(
            data,
            RunFolder(run),
            Request(minutes=minutes, changes={"seed": seed}),
            sampler=sample,
            on_ready=lambda training: before.append(sample(training.model)),
            on_event=display.show,
            on_remark=display.say,
            floors={"bits_per_byte": floor},
        )
    if summary["stopped"]:
        go_on = shlex.join(["kotha", "train", str(out / "data"), "--out", str(run), "--resume"])
        raise StoppedError(f"stopped at step {summary['steps']:,} and saved; go on with: {go_on}")
    console.print(
        f"{summary['steps']:,} steps, {summary['tokens']:,} tokens in {summary['seconds'] / 60:.1f} minutes. "
        f"On stories that it has never seen: [bold]{summary['bits_per_byte']:.3f}[/] bits per byte "
        f"({summary['bits_per_character']:.3f} per character). The grammar's floor, which no model can go below on "
        f"average, is [bold]{floor:.3f}[/]."
    )
    return before[0]


def _let_it_write(console: Console, model: "LanguageModel", prompts: list[str], written: list[Story]) -> Told:
    _step(console, 6, "Writing", "given the first words of texts that it has never seen")
    with notes().status("writing …"):
        texts = model.generate(prompts, tokens=_TOKENS, **_WRITING)
    for text in texts:
        console.print(Padding(text, (0, 0, 1, 2)), markup=False)
    told = Told.read(texts, (document.text for document in written))
    console.print(f"{told.known} of its {told.words} words ({told.share:.1%}) are words of the stories that it read.")
    return told


def _look_inside(console: Console, model: "LanguageModel", out: Path, text: str) -> None:
    """The pages that the report leads to: what happens in the model as it reads and writes a text."""
    _step(console, 7, "A look inside", "pages that show what happens in there as it reads and writes")
    with notes().status("looking …"):
        model.attention(text, generate=_LOOKED_AT).save(out / "attention.html")
        model.flow(text).save(out / "flow.html")
        model.lens(text, generate=_LOOKED_AT).save(out / "lens.html")
        model.heads().save(out / "heads.html")
    console.print(", ".join(address for address, *_ in PAGES), markup=False)


def _first(documents: list[Story], kind: str) -> Story:
    return next(document for document in documents if document.kind == kind)


def _beginning(text: str) -> str:
    """The first words of a text, line ends and all."""
    found = re.match(rf"(\S+\s+){{{_PROMPT_WORDS - 1}}}\S+", text)
    return found[0] if found else text


def _step(console: Console, number: int, name: str, about: str) -> None:
    console.print(f"\n[bold green]{number}. {name}[/]  [dim]{about}[/]")
