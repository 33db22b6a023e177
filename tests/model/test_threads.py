"""Every process rounds in the same way, whether or not it has called ``torch.set_num_threads``."""

import os
import subprocess
import sys

# A model of realistic size; the gradients of the usual test models are too small to be split between threads.
GRADIENTS = """
from dataclasses import replace
import torch
from kotha.model.family import build
from kotha.model.presets import preset

def gradients():
    model.zero_grad()
    torch.manual_seed(1)
    model(tokens).logsumexp(-1).sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]

torch.manual_seed(0)
model = build(replace(preset("pocket"), vocab_size=1000))
tokens = torch.randint(0, 1000, (16, model.config.context_length))
before = gradients()
torch.set_num_threads(torch.get_num_threads())
print(all(map(torch.equal, before, gradients())))
"""


def test_gradients_are_those_of_a_process_that_set_its_threads() -> None:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    }
    done = subprocess.run(
        [sys.executable, "-c", GRADIENTS], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
