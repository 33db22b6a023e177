"""Train one model on several virtual machines, inject faults, and report the results.

    python -m tests.fault_injection.distributed [--cases ddp shard lost ...] [--out FOLDER]

The machines are network namespaces on this machine (``virtual_machines.py``). Each case is one training run by
``torchrun`` whose losses must equal those of the same run in one process without faults.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import Popen

from tests.fault_injection.virtual_machines import Machine, machines, missing
from tests.launching import Launcher
from tests.prepared import prepared_by_commands

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import record

TOLERANCE = 1e-5  # as in tests/training/test_distributed.py
_MODEL = [
    *("--preset", "char", "--recipe", "classic", "--set", "batch_size=24", "--set", "precision=float32"),
    *("--set", "micro_batch_size=6", "n_layers=2", "d_model=64", "n_heads=2", "context_length=64"),
    *("--set", "evaluate_tokens=512", "--set", "ema_decay=0.9", "dropout=0.0", "warmup_steps=2"),
    *("--set", "keep_checkpoints=9", "evaluate_every=40"),
]


@dataclass
class Found:
    """The result of a case."""

    case: str
    steps: int
    largest_difference: float = 0.0  # largest difference from the losses of a single process
    seconds: float = 0.0
    said: list[str] = field(default_factory=list)  # lines of the log about the fault
    wrong: list[str] = field(default_factory=list)


class Ground:
    """The data of all cases, and the single-process runs with which they are compared."""

    def __init__(self, launcher: Launcher, place: Path) -> None:
        self.launcher, self.place = launcher, place
        (place / "data").mkdir(parents=True)
        self.data = prepared_by_commands(place / "data", vocab_size=601)

    def reference(self, steps: int) -> Path:
        """Return the single-process run with this number of steps; it is trained only once."""
        run = self.place / f"alone-{steps}"
        if not run.exists():
            words = ["train", str(self.data), "--out", str(run), *_MODEL, "--steps", str(steps)]
            self.launcher.run(words, self.place / "log")
        return run


class Trial:
    """A training run on several machines."""

    def __init__(
        self, ground: Ground, case: str, steps: int, *more: str, nodes: str = "2", apart: bool = False
    ) -> None:
        self.ground, self.found, self.nodes, self.apart = ground, Found(case, steps), nodes, apart
        self.place = ground.place / case
        self.place.mkdir()
        self.words = [str(ground.data), "--out", str(self.run), *_MODEL, "--steps", str(steps), *more]

    @property
    def run(self) -> Path:
        """The run's folder, as seen by a machine."""
        return self.place / "disk" / "run"

    def seen(self, machine: Machine) -> Path:
        """The run's folder of a machine, as seen by this process."""
        return machine.disk / "run" if self.apart else self.run

    def log(self, machine: Machine) -> Path:
        """The file that receives the output of a machine."""
        return self.place / f"{machine.name}.log"

    def torchrun(self, machine: Machine, *more: str, processes: int = 1) -> Popen[bytes]:
        """Run the command on a machine; the command is the same on every machine."""
        how = ["--nnodes", self.nodes, "--nproc-per-node", str(processes), "--max-restarts", "3"]
        how += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "node-1:29400", "--rdzv-id", self.found.case]
        how += ["--rdzv-conf", "last_call_timeout=2"]
        words = [sys.executable, "-m", "torch.distributed.run", *how, "-m", "kotha", "train", *self.words, *more]
        return machine.start(words, self.log(machine))

    def reach(self, machine: Machine, step: int, seconds: float = 120) -> None:
        """Wait until a machine's run has logged a step."""
        end = time.monotonic() + seconds
        while len(losses(self.seen(machine))) < step:
            if time.monotonic() > end or all(each.poll() is not None for each in machine.started):
                raise TimeoutError(f"step {step} was not reached: {self.log(machine).read_text()[-2000:]}")
            time.sleep(0.02)

    def trains(self, machine: Machine, count: int, seconds: float = 180) -> None:
        """Wait until ``count`` processes have resumed and done a few steps."""
        end = time.monotonic() + seconds
        while going_on(self.log(machine)) != count:
            if time.monotonic() > end:
                raise TimeoutError(f"no {count} processes: {self.log(machine).read_text()[-2000:]}")
            time.sleep(0.05)
        self.reach(machine, len(losses(self.seen(machine))) + 10, seconds)

    def end(self, started: Sequence[Popen[bytes]], keeper: Machine, seconds: float = 240) -> Found:
        """Wait for the end, and compare the run with the single-process run."""
        codes = [process.wait(timeout=seconds) for process in started]
        if any(codes):
            self.found.wrong.append(f"exit codes {codes}")
        expected, got = losses(self.ground.reference(self.found.steps)), losses(self.seen(keeper))
        if len(got) != len(expected):
            self.found.wrong.append(f"{len(got)} steps in the log instead of {len(expected)}")
        self.found.largest_difference = max((abs(a - b) for a, b in zip(got, expected, strict=False)), default=0.0)
        if not self.found.largest_difference <= TOLERANCE:
            self.found.wrong.append(f"the losses differ by {self.found.largest_difference:.2g}")
        return self.found

    def tells(self, machine: Machine, *words: str) -> None:
        """Return the lines in a machine's log that contain these words; if there are none, record an error."""
        lines = [
            line for line in self.log(machine).read_text(encoding="utf-8").splitlines() if all(w in line for w in words)
        ]
        self.found.said += [f"{machine.name}: {line.strip()}" for line in lines]
        if not lines:
            self.found.wrong.append(f"{machine.name} does not say: {' … '.join(words)}")


def losses(run: Path) -> list[float]:
    """Return the losses that a run has logged, one per step."""
    file = run / "metrics.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    found: list[float] = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:  # the file is being written
            break
        if "loss_nats" in row:
            found.append(row["loss_nats"])
    return found


def going_on(log: Path) -> int | None:
    """Return the number of processes whose last message reports that they have resumed."""
    result = re.findall(
        r"resuming from step [\d,]+ of [\d,]*\d(?:, in (\d+) processes)?", log.read_text(encoding="utf-8")
    )
    return int(result[-1] or 1) if result else None


# -- the cases --------------------------------------------------------------------------------------------------------


def ddp(ground: Ground) -> Found:
    """Two machines, each with the full model."""
    trial = Trial(ground, "ddp", 80)
    with machines(2, trial.place) as nodes:
        return trial.end([trial.torchrun(each) for each in nodes], nodes[0])


def shard(ground: Ground) -> Found:
    """Two machines, each with some rows of every weight."""
    trial = Trial(ground, "shard", 80, "--shard")
    with machines(2, trial.place) as nodes:
        return trial.end([trial.torchrun(each) for each in nodes], nodes[0])


def lost(ground: Ground) -> Found:
    """A machine is switched off and restarted; all processes resume from the last checkpoint."""
    trial = Trial(ground, "lost", 80, "--checkpoint-every", "10")
    with machines(2, trial.place) as nodes:
        first, second = nodes
        started = [trial.torchrun(each) for each in nodes]
        trial.reach(first, 25)
        second.switch_off()
        started[1] = trial.torchrun(second)
        found = trial.end(started, first)
        trial.tells(first, "resuming from step")
        return found


def first(ground: Ground) -> Found:
    """The rendezvous machine is switched off: the other command exits, and the same command on both resumes the run."""
    trial = Trial(ground, "first", 80, "--checkpoint-every", "10")
    with machines(2, trial.place) as nodes:
        meeting_place, other = nodes
        _, left = (trial.torchrun(each) for each in nodes)
        trial.reach(meeting_place, 25)
        meeting_place.switch_off()
        if left.wait(timeout=180) == 0:
            trial.found.wrong.append("who lost the others ended as if all were done")
        trial.tells(other, "another process of this training run exited")
        found = trial.end([trial.torchrun(each) for each in nodes], meeting_place)
        trial.tells(meeting_place, "resuming from step")
        return found


def slow(ground: Ground) -> Found:
    """A slow machine is named in the log, and is named again when it has recovered."""
    trial = Trial(ground, "slow", 80)
    with machines(2, trial.place) as nodes:
        first, second = nodes
        started = [trial.torchrun(each) for each in nodes]
        trial.reach(first, 5)
        with second.slowed():
            trial.reach(first, 45)
        found = trial.end(started, first)
        trial.tells(first, "node-2", "times as long as the median")
        trial.tells(first, "node-2", "as fast as the others again")
        return found


def elastic(ground: Ground) -> Found:
    """One run on one machine, then two, then four, then one again."""
    trial = Trial(ground, "elastic", 160, "--checkpoint-every", "160", nodes="1:4")
    with machines(4, trial.place) as nodes:
        first = nodes[0]
        started = [trial.torchrun(first)]
        with first.slowed():  # on a fast machine, the run would end before the other machines join
            trial.reach(first, 10)
            for count in (2, 4):
                for each in nodes[len(started) : count]:
                    started.append(trial.torchrun(each))
                trial.trains(first, count)
        for each in started[1:]:
            each.terminate()  # stopped by a signal, as when a scheduler reclaims its machines
        trial.trains(first, 1)
        found = trial.end(started[:1], first)
        trial.tells(first, "resuming from step")
        return found


def apart(ground: Ground) -> Found:
    """Without a shared disk, each machine stores its own rows; the run resumes on the same, a new or one machine."""
    trial = Trial(ground, "apart", 80, "--checkpoint-every", "10", "--shard", nodes="2", apart=True)
    with machines(3, trial.place, apart=True) as nodes:
        first = nodes[0]
        for step, some in ((25, nodes[:2]), (45, nodes[:2]), (65, nodes)):
            trial.nodes = str(len(some))
            for each in some:
                trial.torchrun(each, *(["--resume"] if step > 25 else []))
            trial.reach(first, step)
            for each in some:
                each.switch_off()
            _look_at_shards(trial, some)
        # A user would run this on the first machine: rsync -a node-2:run/checkpoints/ run/checkpoints/, and so on.
        for each in nodes[1:]:
            folder = trial.seen(each) / "checkpoints"
            shutil.copytree(folder, trial.seen(first) / "checkpoints", dirs_exist_ok=True)
        words = [sys.executable, "-m", "kotha", "train", *trial.words, "--resume"]
        found = trial.end([first.start([word for word in words if word != "--shard"], trial.log(first))], first)
        trial.tells(first, "resuming from step")
        return found


def _look_at_shards(trial: Trial, nodes: Sequence[Machine]) -> None:
    """Check that each disk contains only its machine's rows of the newest checkpoint."""
    count = len(nodes)
    for rank, machine in enumerate(nodes):
        folder = sorted((trial.seen(machine) / "checkpoints").glob("step-*"))[-1]
        files = sorted(file.name for file in folder.glob("model*"))
        if files != [f"model-{rank:05d}-of-{count:05d}.safetensors"]:
            trial.found.wrong.append(f"{machine.name} has {files} of {folder.name}")


def cut(ground: Ground) -> Found:
    """A network cable is disconnected for thirty seconds."""
    trial = Trial(ground, "cut", 80, "--checkpoint-every", "10")
    with machines(2, trial.place) as nodes:
        first, second = nodes
        started = [trial.torchrun(each) for each in nodes]
        trial.reach(first, 25)
        second.cable(plugged=False)
        time.sleep(30)
        second.cable(plugged=True)
        found = trial.end(started, first)
        trial.tells(first, "stalled")
        return found


CASES: dict[str, Callable[[Ground], Found]] = {
    each.__name__: each for each in (ddp, shard, lost, first, slow, elastic, apart, cut)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--keep", type=Path, help="a new folder for all that they wrote and said")
    given = parser.parse_args()
    if reason := missing():
        print(f"skipped: {reason}")
        return 0
    rows = []
    with tempfile.TemporaryDirectory(prefix="kotha-nodes-") as place, Launcher() as launcher:
        ground = Ground(launcher, given.keep or Path(place) / "ground")
        for name in given.cases:
            began = time.monotonic()
            found = CASES[name](ground)
            found.seconds = round(time.monotonic() - began, 1)
            rows.append(asdict(found))
            print(f"{name:8} {found.steps} steps, {found.seconds} s, losses differ by {found.largest_difference:.1g}")
            print(*(f"  {line}" for line in found.said), f"  wrong: {found.wrong or 'nothing'}", sep="\n", flush=True)
            record.save("nodes", {"tolerance": TOLERANCE, "cases": rows}, ["torch"], given.out)
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
