"""Make ``python -m kotha`` run the ``kotha`` command; ``kotha.cli`` is imported by name to respect the layers."""

import sys
from importlib import import_module

run = import_module("kotha.cli").run

if __name__ == "__main__":
    sys.exit(run())
