"""The commands under test: how each is started and resumed, and the invariants after a fault.

Each case has a directory at a fixed path, because some files contain paths. ``begin`` fills it with the input. After a
fault and a second run the output must equal that of an undisturbed run byte for byte, except for files that differ
between undisturbed runs (times). ``sound`` checks the state right after the fault.
"""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fault_injection import job_client
from tests.launching import Launcher

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.errors import KothaError
from kotha.server.jobs.store import JobStore
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.checkpoint import load_checkpoint

Words = list[str]
_TINY = [
    *("--preset", "pocket", "--recipe", "modern", "--checkpoint-every", "3", "--steps", "8"),
    *("--set", "batch_size=2", "micro_batch_size=2", "precision=float32", "dropout=0.1", "n_layers=1", "d_model=32"),
    *("--set", "n_heads=2", "context_length=16", "evaluate_every=4", "evaluate_tokens=256", "warmup_steps=2"),
]


@dataclass(frozen=True)
class Case:
    """A command under test."""

    name: str
    needs: Sequence[Callable[[Path], Words]]  # commands that create its input
    words: Callable[[Path], Words]
    again: Callable[[Path], Words]  # the command that resumes it
    out: str  # the path of its output, relative to the directory
    sound: Callable[[Path], None]  # raises if a partial output is accepted as complete


def tree(path: Path) -> dict[str, str]:
    """Return the files under a path with their checksums."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {str(each.relative_to(path.parent)): _sum(each) for each in files}


def _sum(file: Path) -> str:
    if file.suffix == ".db":  # the same rows may be stored in other pages
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as index:
            held = "\n".join(index.iterdump()).encode()
        index.close()
        return hashlib.sha256(held).hexdigest()
    return hashlib.sha256(file.read_bytes()).hexdigest()


def leftovers(folder: Path) -> list[str]:
    """Return the temporary files under a directory."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if ".kotha-" in path.name)


def begin(launcher: Launcher, case: Case, folder: Path) -> None:
    """Create the case's directory, which contains only its input."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for words in case.needs:
        launcher.run(words(folder), folder.with_name("log"))


def _stories(folder: Path) -> Words:
    return ["corpus", "stories", "--documents", "40", "--out", str(folder / "s.jsonl")]


def _tokenizer(folder: Path) -> Words:
    return ["tokenizer", "train", str(folder / "s.jsonl"), "--vocab-size", "700", "--out", str(folder / "tok")]


def _shards(folder: Path) -> Words:
    return ["prepare", str(folder / "s.jsonl"), "--tokenizer", str(folder / "tok"), "--out", str(folder / "data")]


def _run(folder: Path) -> Words:
    return ["train", str(folder / "data"), "--out", str(folder / "run"), *_TINY]


def _go_on(folder: Path) -> Words:
    begun = (folder / "run" / "config.json").exists()
    return [*_run(folder)[:4], "--resume"] if begun else _run(folder)


def _export(to: str, out: str) -> Callable[[Path], Words]:
    return lambda folder: ["export", str(folder / "run"), "--to", to, "--out", str(folder / out)]


def _index(folder: Path) -> Words:
    return ["index", str(folder / "s.jsonl"), "--out", str(folder / "index.db")]


def _over(words: Callable[[Path], Words]) -> Callable[[Path], Words]:
    return lambda folder: [*words(folder), "--overwrite"]


def _there(path: Path, look: Callable[[Path], object]) -> None:
    if path.exists():
        look(path)


def _sound_run(folder: Path) -> None:
    run = folder / "run"
    for manifest in sorted((run / "checkpoints").glob("step-*/manifest.json")):  # without one, not accepted
        load_checkpoint(manifest.parent)
    _there(run / "best", bundle.load)
    _there(run / "summary.json", lambda path: json.loads(path.read_text(encoding="utf-8")))


def _sound_index(folder: Path) -> None:
    file = folder / "index.db"
    if not file.exists() or not file.stat().st_size:
        return
    with sqlite3.connect(file) as index:
        (result,) = index.execute("PRAGMA integrity_check").fetchone()
    index.close()
    if result != "ok":
        raise KothaError(f"{file}: {result}")


def _sound_tokenizer(folder: Path) -> None:
    _there(folder / "tok" / "tokenizer.json", lambda path: Tokenizer.load(path.parent))


def _sound_shards(folder: Path) -> None:
    _there(folder / "data", Dataset)


def _serve_a_job(folder: Path) -> Words:
    return ["-m", "tests.fault_injection.job_client", str(folder / "jobs")]


def _sound_jobs(folder: Path) -> None:
    if not (folder / "jobs").exists():
        return
    store = JobStore(folder / "jobs")
    for file in store.uploads.all():
        assert store.uploads.place(file.id).read_text(encoding="utf-8") == job_client.TEXT
    for job in store.all():
        if job.state == "done":
            Tokenizer.load(store.result(job.id))


def _sound_weights(folder: Path) -> None:
    _there(folder / "hf", lambda path: kotha.load(path, device="cpu"))


def _sound_gguf(folder: Path) -> None:
    from gguf import GGUFReader

    _there(folder / "model.gguf", GGUFReader)


_READ = (_stories, _tokenizer, _shards)
CASES = {
    case.name: case
    for case in (
        Case("tokenizer", (_stories,), _tokenizer, _over(_tokenizer), "tok", _sound_tokenizer),
        Case("prepare", _READ[:2], _shards, _over(_shards), "data", _sound_shards),
        Case("train", _READ, _run, _go_on, "run", _sound_run),
        Case("export", (*_READ, _run), _export("hf", "hf"), _over(_export("hf", "hf")), "hf", _sound_weights),
        Case(
            *("gguf", (*_READ, _run), _export("gguf", "model.gguf"), _over(_export("gguf", "model.gguf"))),
            *("model.gguf", _sound_gguf),
        ),
        Case("index", (_stories,), _index, _index, "index.db", _sound_index),
        Case("jobs", (), _serve_a_job, _serve_a_job, "jobs", _sound_jobs),
    )
}
