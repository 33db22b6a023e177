"""Run the ``kotha`` command as ``python -m kotha``; ``kotha.cli`` is imported by name, so no package depends on it."""

import sys
from importlib import import_module

run = import_module("kotha.cli").run

if __name__ == "__main__":
    sys.exit(run())
