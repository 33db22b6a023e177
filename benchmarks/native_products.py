"""Products of the step in C beside torch's: rows by a weight matrix, in float32 and in int8, on one core.

    python benchmarks/native_products.py

The shapes are those of the model in the box. The quickest of many tries counts, so that neighbours on the machine do
not; a row must be the same to the last bit in any company.
"""

import argparse
import ctypes
import sys
from pathlib import Path
from timeit import repeat
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import record  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

from kotha.generation.native import Own, matrix, native  # noqa: E402
from kotha.generation.weights import Int8Linear  # noqa: E402

SHAPES = ((1152, 384), (768, 384), (384, 768), (8192, 384))
ROWS = (1, 2, 4, 8, 16, 32, 64)
TRIES = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="native_products")
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch._C._set_mkldnn_enabled(False)  # as in the engine's steps
    library, found = native(), []
    if library is None:
        raise SystemExit("no C compiler on this machine")
    for outs, width in SHAPES:
        linear = nn.Linear(width, outs, bias=False).requires_grad_(False)
        for rows in ROWS:
            x = torch.randn(rows, width)
            gigas = 2e-9 * rows * outs * width
            layers = {"float32": linear, "int8": Int8Linear(linear)}
            speeds = {name: gigas / _seconds(library, layer, x) for name, layer in layers.items()}
            speeds["torch"] = gigas / min(repeat(lambda: linear(x), number=1, repeat=TRIES))  # noqa: B023
            found.append({"outs": outs, "width": width, "rows": rows, **{k: round(v, 1) for k, v in speeds.items()}})
            print(found[-1], flush=True)
    record.save(options.name, found, ["torch"], options.out)


def _seconds(library: Any, layer: Any, x: torch.Tensor) -> float:
    y, whole = torch.empty(len(x), len(layer.weight)), torch.empty(x.shape, dtype=torch.int8)
    scale = torch.empty(len(x))
    own, given = Own(whole=whole.data_ptr(), scale=scale.data_ptr()), matrix(layer)
    where = (ctypes.byref(given), x.data_ptr(), ctypes.byref(own), y.data_ptr())
    return min(repeat(lambda: library.linear(*where, len(x), 1), number=1, repeat=TRIES))


if __name__ == "__main__":
    main()
