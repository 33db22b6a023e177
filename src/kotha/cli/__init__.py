"""The command line. ``run`` installs signal handlers before it imports any large package."""

import gc
import os
import sys


def run() -> int:
    """Run the command in ``sys.argv`` and return its exit code; an interrupt prints no traceback."""
    from kotha.cli import interrupts

    interrupts.install_signal_handlers()
    os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")  # otherwise torch on ARM leaves /tmp/perf-PID.map behind
    sys.stdout, sys.stderr = (each or open(os.devnull, "w") for each in (sys.stdout, sys.stderr))  # noqa: SIM115, PTH123
    from kotha.cli.main import main

    code = main()
    interrupts.ignore_signals()
    gc.freeze()  # skip the final garbage collection, which takes half a second with torch
    return code
