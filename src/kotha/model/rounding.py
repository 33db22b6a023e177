"""Int8 quantization of matrices: integers up to 127 and a scale for each row.

Each row has its own scale because rows differ in magnitude. The error is at most half a step, which is 1/254 of the
row's largest absolute value.
"""

import torch
from torch import Tensor

_LARGEST = 127
# The smallest divisor, for a row of zeros.
_TINY = 1e-30


def round_rows(weight: Tensor, scale_type: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Quantize to integers and a scale for each row: (rows, n) -> int8 (rows, n), (rows,).

    >>> round_rows(torch.tensor([[1.0, -0.5], [0.0, 254.0]]))
    (tensor([[127, -64],
            [  0, 127]], dtype=torch.int8), tensor([0.0079, 2.0000]))
    """
    wide = weight.detach().float()
    scale = (wide.abs().amax(dim=1) / _LARGEST).to(scale_type)
    whole = wide / scale.float().clamp(min=_TINY)[:, None]
    return whole.round().clamp(-_LARGEST, _LARGEST).to(torch.int8).contiguous(), scale


def widen_rows(whole: Tensor, scale: Tensor) -> Tensor:
    """Dequantize: int8 (rows, n), (rows,) -> float32 (rows, n).

    >>> widen_rows(torch.tensor([[127, -64]], dtype=torch.int8), torch.tensor([0.5]))
    tensor([[ 63.5000, -32.0000]])
    """
    return whole.float() * scale.float()[:, None]
