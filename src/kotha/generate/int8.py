"""Linear layers with weights of eight bits (quantization): a quarter of the bytes, some one percent of error a product.

torch has such products for some machines only: on ARM without bfloat16 all of its ways are slower than float32
(``docs/experiments.md``). So ``native.c`` has one; where it cannot be compiled, torch's own ``_weight_int8pack_mm``
serves, which keeps x as it is.
"""

import ctypes

import torch
from torch import Tensor, nn

from kotha.generate.native import Own, matrix, native


class Int8Linear(nn.Module):
    """``nn.Linear`` with each row of its matrix in whole numbers up to 127: (..., in) -> (..., out)."""

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        scale = weight.abs().amax(dim=1) / 127  # (out,)
        whole = (weight / scale.clamp(min=1e-30)[:, None]).round().to(torch.int8)
        self.register_buffer("weight", whole.contiguous(), persistent=False)
        self.register_buffer("scale", scale, persistent=False)
        bias = None if linear.bias is None else linear.bias.detach().float()
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The product, by whichever way this machine has."""
        library = native() if x.device.type == "cpu" else None
        return self._by_torch(x) if library is None else self._natively(x, library).to(x.dtype)

    def _by_torch(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])  # (rows, in)
        y: Tensor = torch._weight_int8pack_mm(rows, self.weight, self.scale.to(x.dtype)).view(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias

    def _natively(self, x: Tensor, library: ctypes.CDLL) -> Tensor:
        x = x.float().contiguous()
        n_rows = x.numel() // x.shape[-1]
        y = torch.empty(*x.shape[:-1], len(self.scale))
        whole, scale = torch.empty(x.shape, dtype=torch.int8), torch.empty(n_rows)
        own = Own(whole=whole.data_ptr(), scale=scale.data_ptr())
        where = (ctypes.byref(matrix(self)), x.data_ptr(), ctypes.byref(own), y.data_ptr())
        library.linear(*where, n_rows, torch.get_num_threads())
        return y
