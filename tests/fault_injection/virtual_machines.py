"""Virtual machines made of network namespaces, connected by a switch, each with its own disk.

A machine has its own address, its own host name and, if it is ``apart``, its own view of one folder, so that no file
system is shared. A machine can be switched off (all its processes are killed at once), disconnected from the network,
or slowed down. This module needs Linux, root, ``ip`` and ``unshare``.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def missing() -> str | None:
    """Return the reason why virtual machines cannot be created on this system; None if they can."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            return f"there is no `{program}` here"
    name = f"kotha-{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()}"
    _ip("netns", "del", name)
    return None


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


@dataclass
class Machine:
    """A virtual machine."""

    name: str
    space: str  # its network namespace
    switch: str  # the switch's network namespace
    port: str  # its network interface in the switch
    disk: Path  # the folder that it sees as ``shown``, if it shares no disk
    shown: Path
    apart: bool = False
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a program on the machine; its output is appended to a file."""
        inside = [f"hostname {self.name}", f"mount --bind {shlex.quote(str(self.disk.parent / 'hosts'))} /etc/hosts"]
        if self.apart:
            inside.append(f"mount --bind {shlex.quote(str(self.disk))} {shlex.quote(str(self.shown))}")
        inside.append(f"exec {shlex.join(words)}")
        whole = ["ip", "netns", "exec", self.space, "unshare", "--uts", "--mount", "sh", "-ec", "\n".join(inside)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        environment |= {"PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        with log.open("ab") as said:
            process = subprocess.Popen(whole, stdout=said, stderr=said, env=environment, start_new_session=True)
        self.started.append(process)
        return process

    def processes(self) -> list[int]:
        """Return all processes on the machine."""
        return [int(number) for number in _ip("netns", "pids", self.space).split()]

    def workers(self) -> list[int]:
        """Return the machine's training processes: our programs that were started by another program."""
        found = []
        for number in self.processes():
            with suppress(OSError):
                words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
                if b"torch.distributed.run" not in words and b"kotha" in words:
                    found.append(number)
        return found

    def switch_off(self) -> None:
        """Kill all processes on the machine at once, as in a power failure."""
        for number in self.processes():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        for process in self.started:
            process.wait()

    def cable(self, plugged: bool) -> None:
        """Disconnect the machine from the switch, or connect it again."""
        _ip("-n", self.switch, "link", "set", self.port, "up" if plugged else "down")

    @contextmanager
    def slowed(self, running: float = 0.02, standing: float = 0.1) -> Iterator[None]:
        """Slow down the machine's training processes, including any that start later, by pausing them repeatedly."""
        ended = threading.Event()

        def drag() -> None:
            while not ended.is_set():
                workers = self.workers()
                for what, pause in ((signal.SIGSTOP, standing), (signal.SIGCONT, running)):
                    for number in workers:
                        with suppress(ProcessLookupError):
                            os.kill(number, what)
                    time.sleep(pause)

        thread = threading.Thread(target=drag)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def machines(count: int, place: Path, apart: bool = False) -> Iterator[list[Machine]]:
    """Create machines on one switch, and remove them at the end with all their processes.

    All machines see ``place/disk``; if they are ``apart``, each machine sees its own folder under this path.
    """
    mark = f"kotha-{os.getpid()}"
    switch, shown = f"{mark}-switch", place / "disk"
    shown.mkdir(parents=True, exist_ok=True)
    addresses = {f"node-{number}": f"10.77.0.{number}" for number in range(1, count + 1)}
    known = "".join(f"{address} {name}\n" for name, address in addresses.items())
    (place / "hosts").write_text("127.0.0.1 localhost\n" + known, encoding="utf-8")
    made: list[Machine] = []
    spaces = [switch]
    _ip("netns", "add", switch)
    try:
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for number, (name, address) in enumerate(addresses.items(), 1):
            space, port = f"{mark}-{number}", f"port{number}"
            _ip("netns", "add", space)
            spaces.append(space)
            _ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", switch)
            _ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", space, "link", "set", device, "up")
            _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
            disk = place / name
            disk.mkdir(exist_ok=True)
            made.append(Machine(name, space, switch, port, disk, shown, apart))
        yield made
    finally:
        for machine in made:
            machine.switch_off()
        for space in spaces:
            _ip("netns", "del", space)
