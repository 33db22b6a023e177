"""The fuzzed loaders, each with its input and how it is called.

A loader may succeed or raise a KothaError; the server may answer with any status below 500. Any other result of an
input is a defect. A target is opened in a child process, once for many inputs, because it may start threads, and a fork
copies only the current thread.
"""

import json
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz import sums
from tests.fuzz.layers import Parcel

ARCHIVE = Path(__file__).with_name("seeds.zip")
_TEXT = "নদীর ধারে ক্ষেত, ১২ Words\u200d.\n"

Loader = Callable[[Path], object]  # takes the folder that contains an input


@dataclass(frozen=True)
class Target:
    """A loader to fuzz."""

    name: str
    open: Callable[[], Loader]
    share: int  # share of a thousand inputs; fast targets get more
    agree: Callable[[Parcel], Parcel] | None = None  # corrects checksums inside the input

    def __reduce__(self) -> tuple[Callable[[str], "Target"], tuple[str]]:
        return named, (self.name,)  # pickled by name


def named(name: str) -> Target:
    """Return the target with a name."""
    return TARGETS[name]


@cache
def seeds(target: str) -> dict[str, Parcel]:
    """Return the initial inputs of a target by name."""
    found: dict[str, Parcel] = {}
    with zipfile.ZipFile(ARCHIVE) as archive:
        for entry in archive.namelist():
            of, name, file = entry.split("/", 2)
            if of == target:
                found.setdefault(name, {})[file] = archive.read(entry)
    return found


def write(folder: Path, parcel: Parcel) -> Path:
    """Write an input to a new folder."""
    folder.mkdir(parents=True)
    for name, data in parcel.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def _tokenizer() -> Loader:
    from kotha.text.tokenizer.tokenizer import Tokenizer

    def load(folder: Path) -> None:
        tokenizer = Tokenizer.load(folder)
        ids = tokenizer.encode(_TEXT)
        tokenizer.decode(ids)
        stream = tokenizer.stream()
        "".join([*map(stream.push, ids), stream.finish()])

    return load


def _foreign_tokenizer() -> Loader:
    from kotha.text.tokenizer.importers import import_tokenizer

    def load(folder: Path) -> None:
        tokenizer = import_tokenizer(folder)
        tokenizer.decode(tokenizer.encode(_TEXT))

    return load


def _stream() -> Loader:
    """Decode random tokens as a stream of complete aksharas; joined, they must equal decoding at once."""
    from kotha.text.tokenizer.tokenizer import Tokenizer

    with TemporaryDirectory() as place:
        known = [Tokenizer.load(write(Path(place) / name, held)) for name, held in seeds("tokenizer").items()]

    def load(folder: Path) -> None:
        data = (folder / "tokens").read_bytes()[:1025] if (folder / "tokens").exists() else b""
        tokenizer = known[len(data) and data[0] % len(known)]
        pairs = zip(data[1::2], data[2::2], strict=False)
        ids = [(high << 8 | low) % (tokenizer.vocab_size + (high == 255)) for high, low in pairs]
        whole = tokenizer.decode(ids)
        for decoder in (tokenizer.stream(), tokenizer.characters()):
            result = "".join([*(decoder.push(token) for token in ids), decoder.finish()])
            assert result == whole, f"token by token {result!r}, at once {whole!r}"

    return load


def _data() -> Loader:
    from kotha.text.shards import Dataset

    def load(folder: Path) -> None:
        data = Dataset(folder)
        for split in data.splits.values():
            for document in split:
                data.tokenizer.decode(document.tolist())

    return load


def _model() -> Loader:
    import torch

    from kotha.artifacts import model_folder as bundle
    from kotha.model.gpt import GPT

    def load(folder: Path) -> None:
        opened = bundle.load(folder)
        if isinstance(opened.model, GPT):
            with torch.no_grad():
                opened.model(torch.zeros(1, 2, dtype=torch.long))

    return load


def _adapter() -> Loader:
    """Apply an adapter to its base model; the base model is valid."""
    from kotha.artifacts import model_folder as bundle
    from kotha.training.adapter import load_adapted

    with TemporaryDirectory() as place:
        base = bundle.load(write(Path(place) / "base", seeds("model")["plain"]))
    return lambda folder: load_adapted(base, folder)


def _judging() -> Loader:
    from kotha.evaluation.judge.results import judging_tables
    from kotha.evaluation.judge.session import JudgingSession, judging_page

    def load(folder: Path) -> None:
        judging = JudgingSession.open(folder)
        judging.left_for("কেউ")
        judging_page(judging)
        result = judging.result()
        judging_tables(result)
        json.dumps(result.to_dict(), allow_nan=False)

    return load


def _settings() -> Loader:
    """User input for a training run: a TOML file, values of ``--set``, a search space."""
    from kotha.cli.options import from_toml, from_words
    from kotha.errors import KothaError
    from kotha.model.presets import preset
    from kotha.training.config import check_settings
    from kotha.training.request import TrainRequest, choose_settings
    from kotha.training.sweep.space import read_search

    def train(given: dict[str, object]) -> None:
        choice = choose_settings(TrainRequest(preset="pocket", changes=given))
        check_settings(choice.model, choice.settings)
        json.dumps([choice.model.to_dict(), choice.settings.to_dict()], allow_nan=False)

    def load(folder: Path) -> None:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            words = tuple(file.read_bytes().decode("utf-8", "replace").split()[:100])
            for read in (
                lambda file=file: train(from_toml(file)),
                lambda words=words: train(from_words(words)),
                lambda words=words: read_search(words, preset("pocket")),
            ):
                try:
                    read()
                except KothaError as error:
                    assert str(error)

    return load


def _run() -> Loader:
    from kotha.artifacts.run_folder import RunFolder
    from kotha.evaluation.comparison import reached, row_of_run
    from kotha.evaluation.doctor.diagnosis import examine
    from kotha.training.checkpoint import latest_checkpoint
    from kotha.training.reporting.report import read_record, report_document

    def load(folder: Path) -> None:
        run = RunFolder(folder)
        latest_checkpoint(run.checkpoints)
        record = read_record(folder)
        report_document(record).html()
        row_of_run("it", record.config, reached(folder))
        examine(record.config, record.metrics)
        run.read()

    return load


def _weights() -> Loader:
    from kotha.export.huggingface.import_ import find_weights

    return lambda folder: [weight.read() for weight in find_weights(folder)]


def _hugging_face() -> Loader:
    from kotha.export.huggingface.import_ import import_hf

    return import_hf


def _named() -> Loader:
    """Open any file as a model, including GGUF and ONNX files, which can be exported but not imported."""
    import kotha

    def load(folder: Path) -> None:
        for place in [*sorted(folder.iterdir()), folder]:
            try:
                kotha.load(place, device="cpu")
            except kotha.KothaError as error:
                assert str(error)

    return load


def _pictures() -> Loader:
    from kotha.errors import KothaError
    from kotha.storage.images import decode_png, holds_images, read_labelled_images, read_picture

    def load(folder: Path) -> None:
        for file in [file for file in sorted(folder.rglob("*")) if file.is_file()]:
            try:
                if file.suffix == ".npz":
                    holds_images(file)
                    read_labelled_images(file, 8, 1)
                else:
                    read_picture(file, 8, 3)
                    decode_png(file.read_bytes(), 8, 1, 1 << 22)
            except KothaError as error:
                assert str(error)

    return load


def _corpus() -> Loader:
    from kotha.errors import KothaError
    from kotha.text.choices import Errors
    from kotha.text.corpus.dialogues import holds_dialogues, read_dialogues
    from kotha.text.corpus.documents import field_names, read_documents
    from kotha.text.corpus.labelled import read_labelled
    from kotha.text.corpus.pairs import read_text_pairs

    whole = (read_labelled, read_text_pairs, read_dialogues, field_names, holds_dialogues)
    ways: tuple[Errors, ...] = ("stop", "skip")

    def load(folder: Path) -> None:
        for number, file in enumerate(sorted(file for file in folder.rglob("*") if file.is_file())):
            turn = file.stat().st_size + number
            for document in read_documents([file], errors=ways[turn % 2], max_document_bytes=1 << (8 + turn % 12)):
                document.text.encode()
            try:
                whole[turn % len(whole)](file)
            except KothaError as error:
                assert str(error)

    return load


def _documents() -> Loader:
    from kotha.retrieval.documents import IndexOptions, list_files, read_file

    def load(folder: Path) -> None:
        for file in list_files([folder])[0]:
            for excerpt in read_file(file, IndexOptions()):
                excerpt.text.encode()

    return load


def _index() -> Loader:
    from kotha.retrieval.index import search
    from kotha.retrieval.sqlite_store import SqliteStore

    def load(folder: Path) -> None:
        with closing(SqliteStore(folder / "index.db")) as store:
            for hit in search(store, "নদী কোথায়?").hits:
                hit.passage.text.encode()

    return load


def _requests() -> Loader:
    from tests.fuzz.http_requests import Asker

    asker = Asker()

    def load(folder: Path) -> None:
        file = folder / "it.http"
        status, body = asker.ask(file.read_bytes() if file.exists() else b"")
        assert status < 500 or status == 503, f"answered with {status}: {body[:300]!r}"
        if 400 <= status != 404 and body:
            assert json.loads(body)["error"]["message"], body[:300]

    return load


TARGETS = {
    target.name: target
    for target in (
        Target("tokenizer", _tokenizer, 130),
        Target("foreign_tokenizer", _foreign_tokenizer, 60),
        Target("stream", _stream, 190),
        Target("data", _data, 40, sums.data),
        Target("model", _model, 20),
        Target("adapter", _adapter, 20),
        Target("run", _run, 8, sums.checkpoints),
        Target("weights", _weights, 100),
        Target("hugging_face", _hugging_face, 20),
        Target("named", _named, 20),
        Target("pictures", _pictures, 100),
        Target("corpus", _corpus, 120),
        Target("documents", _documents, 40),
        Target("index", _index, 20),
        Target("judging", _judging, 20, sums.judging),
        Target("settings", _settings, 20),
        Target("requests", _requests, 32),
    )
}
