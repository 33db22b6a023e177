"""In a translation model, pruning cross-attention hurts more than pruning self-attention, as the course claims.

The languages are synthetic: each word has one translation, and adjacent words are swapped. The next word depends only
on the source; the earlier target words only determine the position.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kotha.inside.heads.importance import by_ablation, every_head, mean_loss, silence
from kotha.model.config import Seq2SeqConfig
from kotha.model.family import build
from kotha.model.objectives import teacher_forcing, word_loss
from kotha.model.pruning import remove_heads

N_WORDS, START, END = 12, 0, 1
PARTS = {"encoder": "encoder.", "decoder": ".attention.", "cross": ".cross."}
Pair = dict[str, Tensor]
Record = Callable[[str, object], None]


def pairs(chance: torch.Generator, n: int, length: int) -> Pair:
    """Draw sentences and their translations: (n, length + 1) and (n, length + 2)."""
    words = torch.randint(N_WORDS, (n, length), generator=chance)
    swapped = words.clone()
    even = length // 2 * 2
    swapped[:, :even] = words[:, :even].view(n, -1, 2).flip(2).flatten(1)
    start, end = torch.full((n, 1), START), torch.full((n, 1), END)
    return {
        "source": torch.cat((words + 2, end), dim=1),
        "target": torch.cat((start, swapped + 2 + N_WORDS, end), dim=1),
    }


def loss(model: Any, batch: Pair) -> Tensor:
    return word_loss(model, teacher_forcing(model, **batch))


def trained(steps: int, seed: int = 0, **sizes: Any) -> Any:
    torch.manual_seed(seed)
    model = build(Seq2SeqConfig(vocab_size=2 + 2 * N_WORDS, context_length=24, **sizes))
    chance = torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1, (step + 1) / 30)
        found = loss(model, pairs(chance, 32, 5 + step % 5))
        optimizer.zero_grad()
        found.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def heads_by_part(model: Any) -> dict[str, list[str]]:
    """Return the heads of the encoder, of the decoder's self-attention, and of cross-attention."""
    found: dict[str, list[str]] = {part: [] for part in PARTS}
    for head in every_head(model):
        found[next(part for part, mark in PARTS.items() if mark in head)].append(head)
    return found


def costs(model: Any, record: Record) -> tuple[dict[str, float], dict[str, float]]:
    """Return the cost of silencing in nats: one head, averaged over a part, and all heads of the part."""
    held_out = [pairs(torch.Generator().manual_seed(2), 64, length) for length in (6, 8)]
    worth, whole = by_ablation(model, held_out, loss), mean_loss(model, held_out, loss)
    one, together = {}, {}
    for part, heads in heads_by_part(model).items():
        one[part] = sum(worth[head] for head in heads) / len(heads)
        with silence(model, heads):
            together[part] = mean_loss(model, held_out, loss) - whole
    record("loss, one head, all at once", (whole, one, together))
    assert whole < 1, "it has learned to translate: guessing has ln 12 = 2.5"
    return one, together


@pytest.mark.slow
def test_in_a_deeper_model_cross_attention_matters_most_as_a_whole(record_property: Record) -> None:
    """Single heads matter less: they are redundant if one of them attends to the source."""
    model = trained(700, d_model=64, n_heads=4, n_layers=2, d_ff=128, norm_order="pre")
    _, together = costs(model, record_property)
    assert together["cross"] > together["decoder"] and together["cross"] > together["encoder"]
    held_out = [pairs(torch.Generator().manual_seed(3), 64, 6)]
    most = [head for head in heads_by_part(model)["cross"] if not head.endswith(".0")]
    with silence(model, most):
        silent = mean_loss(model, held_out, loss)
    assert mean_loss(remove_heads(model, most), held_out, loss) == pytest.approx(silent, abs=1e-5)
    assert silent < together["cross"] / 2, "one head of four in each layer is enough"
