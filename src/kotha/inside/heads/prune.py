"""Head pruning: remove the least important heads from the weights, and compare the smaller model with the full one.

Given a ``count``, the heads whose ablation increases the loss least are removed, all at once. Each head was ablated
alone in the full model, so two redundant heads can both look unimportant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kotha.artifacts.model_folder import WEIGHTS_FILE, check_place, find_model, load, save, stored_type
from kotha.artifacts.own_text import model_language
from kotha.errors import UsageError
from kotha.i18n.message import OnProgress, Text
from kotha.inside.heads.importance import by_ablation, every_head, least_important, mean_loss, places_of
from kotha.inside.heads.measuring import HeadExamination, TextSource, batch_loss, gather
from kotha.inside.view import to_json
from kotha.model.pruning import remove_heads
from kotha.storage.status import exists


@dataclass(frozen=True)
class Figures:
    """Size and loss of a model."""

    heads: int
    loss_nats: float
    parameters: int
    megabytes: float


@dataclass(frozen=True)
class Pruned:
    """A pruned model folder, compared with the original."""

    out: Path
    text: Text  # name of the text that both were measured on
    removed: list[str]
    before: Figures
    after: Figures

    def to_dict(self) -> Any:
        """Return the comparison as JSON types."""
        return to_json(self)


def prune(
    run: Path,
    out: Path,
    source: TextSource,
    *,
    heads: Sequence[str] | None = None,
    count: int | None = None,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> Pruned:
    """Write a model folder without the named heads or the ``count`` least important ones, and measure both models."""
    if (heads is None) == (count is None):
        raise UsageError("give either heads (by name) or count")
    if heads is not None and not heads:
        raise UsageError("heads is empty; list head names such as blocks.0.attention.1 and blocks.1.attention.0")
    if exists(out) and out.resolve() in (run.resolve(), find_model(run).resolve()):
        raise UsageError(
            "{out} is the folder of the original model, which must be kept for the comparison; choose another folder",
            out=out,
        )
    check_place(out, overwrite)
    examined = gather(load(run).widened(), source)
    model = examined.bundle.model
    if heads is not None:
        places_of(model, heads)  # raises for unknown heads
    else:
        assert count is not None, "heads or count is given"
        least_important(dict.fromkeys(every_head(model), 0.0), count)  # raises before the slow measurement
        heads = least_important(by_ablation(model, examined.batches, batch_loss, on_progress), count)
    smaller, stored = remove_heads(model, heads), stored_type(run)
    more: Any = {"stored": stored, "chat": examined.bundle.chat, "language": model_language(run)}
    save(out, smaller, examined.tokenizer, overwrite=overwrite, **more)
    before, after = _figures(model, run, examined), _figures(load(out).widened().model, out, examined)
    return Pruned(out, examined.text, list(heads), before, after)


def _figures(model: Any, folder: Path, examined: HeadExamination) -> Figures:
    return Figures(
        len(every_head(model)),
        mean_loss(model, examined.batches, batch_loss),
        sum(parameter.numel() for parameter in model.parameters()),
        (find_model(folder) / WEIGHTS_FILE).stat().st_size / 1e6,
    )
