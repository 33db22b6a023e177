"""Start commands by forking a process that has already imported everything, which saves the startup time.

A started command is the same as ``python -m kotha`` in a separate process that can be killed; only the imports are
shared. Tests of the startup itself, and of ``torchrun``, start real processes.
"""

import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Launcher:
    """A context manager that starts commands by forking one Python process."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([sys.executable, __file__], env=environment, **pipes)

    def __enter__(self) -> "Launcher":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def _ask(self, **request: Any) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def start(
        self,
        arguments: Sequence[str],
        log: Path,
        errors_only: bool = False,
        stops: bool = False,
        place: Path | None = None,
        **environment: str,
    ) -> int:
        """Start ``kotha`` with these arguments, writing its output to a file; return its process (and group) id.

        ``-m`` and a module name before the arguments start that module's ``main``; the path of a script starts the
        script. A command that ``stops`` waits before its first step for SIGCONT. Its current directory is ``place``.
        """
        how = {"errors_only": errors_only, "stops": stops, "environment": environment}
        how["place"] = None if place is None else str(place)
        return self._ask(arguments=list(arguments), log=str(log), **how)

    def start_to_die(self, arguments: Sequence[str], log: Path, folder: Path, touches: int) -> int:
        """Start a command that ends as in a power failure when it accesses the folder for the n-th time."""
        return self._ask(arguments=list(arguments), log=str(log), dies=[str(folder), touches])

    def wait(self, process: int) -> int:
        """Return the exit code of a process, negative for a signal."""
        return self._ask(wait=process)

    def run(
        self, arguments: Sequence[str], log: Path, processes: int = 1, disks: Sequence[Path] = (), **environment: str
    ) -> None:
        """Run a command successfully in several processes, as torchrun does; with ``disks``, on separate machines.

        The current directory of a process is its disk, so that its relative paths refer to this disk.
        """
        logs = [log.with_name(f"{log.name}-{rank}") for rank in range(len(disks) or processes)]
        codes = [self.wait(process) for process in self.begin(arguments, logs, disks, **environment)]
        assert not any(codes), "\n".join(each.read_text(encoding="utf-8") for each in logs)

    def begin(
        self, arguments: Sequence[str], logs: Sequence[Path], disks: Sequence[Path] = (), **environment: str
    ) -> list[int]:
        """Start the same processes without waiting, one for each log."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        processes, world = len(logs), {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **environment}
        world |= {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(1 if disks else processes)}
        places = [{"RANK": str(rank), "LOCAL_RANK": "0" if disks else str(rank)} for rank in range(processes)]
        return [
            self.start(
                arguments,
                log,
                place=disks[rank] if disks else None,
                **({**world, **places[rank]} if processes > 1 else {}),
            )
            for rank, log in enumerate(logs)
        ]


def _serve() -> None:
    import torch._dynamo
    import torch.distributed.fsdp  # noqa: F401

    import kotha.cli.main
    import kotha.generation.plain
    import kotha.text.prepare
    import kotha.training.start  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            print(os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1]), flush=True)
            continue
        process = os.fork()
        if process:
            print(process, flush=True)
            continue
        _be(request)
    os._exit(0)  # a normal exit is slow with so many imported modules


def _be(request: dict[str, Any]) -> None:
    """Run the requested program in this process: ``kotha``, or a module given after ``-m``."""
    from kotha.cli import run

    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # background shells ignore SIGINT
    log, nothing = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), os.open(os.devnull, os.O_RDWR)
    for stream, target in enumerate((nothing, nothing if request.get("errors_only") else log, log)):
        os.dup2(target, stream)
    os.environ.update(request.get("environment", {}))
    if request.get("place"):
        os.chdir(request["place"])
    if request.get("stops"):
        os.kill(os.getpid(), signal.SIGSTOP)
    if "dies" in request:
        _die_at(*request["dies"])
    code = 70
    try:
        if request["arguments"][0] == "-m":
            _, module, *words = request["arguments"]
            sys.argv = [module, *words]
            sys.path.insert(0, str(Path(__file__).parents[1]))
            code = importlib.import_module(module).main()
        elif request["arguments"][0].endswith(".py"):
            script, *words = request["arguments"]
            sys.argv = [script, *words]
            sys.path.insert(0, str(Path(script).parent))
            runpy.run_path(script, run_name="__main__")
            code = 0
        else:
            sys.argv = ["kotha", *request["arguments"]]
            code = run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die_at(folder: str, touches: int) -> None:
    left = iter(range(touches - 1, -1, -1))

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        touched = event in ("open", "os.mkdir", "os.rename", "os.remove") and str(arguments[0]).startswith(folder)
        if touched and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


if __name__ == "__main__":
    _serve()
