"""The commands, and how the program begins: by listening to Ctrl-C before anything heavy is imported."""

import gc
import os
import sys


def run() -> int:
    """The program: a command, its exit code, and no traceback for an interrupt on the way."""
    from kotha.cli import interrupts

    interrupts.install_signal_handlers()
    os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")  # torch on ARM leaves a /tmp/perf-PID.map behind otherwise
    sys.stdout, sys.stderr = (each or open(os.devnull, "w") for each in (sys.stdout, sys.stderr))  # noqa: SIM115, PTH123
    from kotha.cli.main import main

    code = main()
    interrupts.ignore_signals()
    gc.freeze()  # all memory goes with the process; Python would first search it for cycles, half a second with torch
    return code
