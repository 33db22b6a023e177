"""Lessons that take one thing from a small GPT, or put it otherwise, and measure what it was good for.

Positions: attention is a weighted sum, and a sum does not know the order of what it adds. With one layer and no
positions, the guess is the same whatever order the past comes in. With two layers the causal mask lets some order
through: what a place saw depends on what stood before it (Haviv et al. 2022, https://arxiv.org/abs/2203.16634).

Joined: some numbers of a vector are the token's and the others the place's. They cannot disturb each other, and the
token has fewer. Added, both have the whole width, and the model must keep them apart by itself.

Mask: without it, the token that is to be guessed stands in plain sight, one place to the right. The loss falls to
almost nothing, on held-out text too, and the model has learned to copy its right neighbour: where there is none, as in
writing, it has nothing to say.

Residuals: without them each part replaces what came in instead of adding to it. What a token was must then survive
every softmax and every matrix on the way, and so must the gradient on its way back. Every softmax averages: without a
way around, all places come to look alike (Dong et al. 2021, https://arxiv.org/abs/2103.03404).

Dropout: with little text to learn from, so that learning by heart pays. Width: what the course's table calls
expressiveness.
"""

from collections.abc import Mapping
from functools import partial

import torch
from torch.nn import functional

from kotha.course.lessons.learning import Assignment, Taught, held_out_loss
from kotha.course.lessons.measured import Measure, MeasuredLesson, Rows
from kotha.course.lessons.measuring import blind_loss, moved_by_shuffling, sighted_loss
from kotha.course.lessons.result import Sample
from kotha.course.lessons.variants import LooksAhead, with_joined_positions, without_residuals
from kotha.i18n.message import Bilingual
from kotha.model.gpt import GPT

_RATES = {"none": 0.0, "tenth": 0.1, "fifth": 0.2, "half": 0.5}
_PARTS = {"eighth": 8, "quarter": 4, "half": 2, "whole": 1}
_SHALLOW, _WINDOWS = 2, 32


class PositionsLesson(MeasuredLesson):
    """The same model with positions and without, one layer deep and two."""

    def tasks(self) -> dict[str, Assignment]:
        """All four."""
        return {
            f"{depth}_{way}": self.on_text(GPT, n_layers=n_layers, positions=positions)
            for depth, n_layers in (("one", 1), ("two", 2))
            for way, positions in (("with", "learned"), ("without", "none"))
        }

    def measures(self) -> dict[str, Measure]:
        """Whether order matters to them."""
        return {"moved": lambda run: moved_by_shuffling(run.model, self.windows)}


class JoinedLesson(MeasuredLesson):
    """Positions added to the tokens' vectors, or joined to them."""

    def tasks(self) -> dict[str, Assignment]:
        """One with added positions and two with joined ones."""
        joined = {
            key: self.on_text(partial(with_joined_positions, width=self.sizes.d_model // part))
            for key, part in (("quarter", 4), ("half", 2))
        }
        return {"added": self.on_text(GPT), **joined}

    def measures(self) -> dict[str, Measure]:
        """How many numbers a token has."""
        return {"token_width": lambda run: float(run.model.tokens.embedding_dim)}


class MaskLesson(MeasuredLesson):
    """The same model with and without the causal mask."""

    def tasks(self) -> dict[str, Assignment]:
        """Both."""
        return {"with": self.on_text(GPT), "without": self.on_text(LooksAhead)}

    def measures(self) -> dict[str, Measure]:
        """The loss as in training and as in writing."""
        return {
            "held_out": lambda run: sighted_loss(run.model, self.windows),
            "blind": lambda run: blind_loss(run.model, self.windows),
        }

    def samples(self, found: Mapping[str, list[Taught]]) -> list[Sample]:
        """What both write."""
        return self.first_texts(found)


class ResidualsLesson(MeasuredLesson):
    """The same model with its residual connections and without, shallow and deep."""

    def tasks(self) -> dict[str, Assignment]:
        """All four."""
        return {
            f"{depth}_{way}": self.on_text(build, n_layers=n_layers)
            for depth, n_layers in (("shallow", _SHALLOW), ("deep", self.sizes.n_layers))
            for way, build in (("with", GPT), ("without", without_residuals))
        }

    def title(self, key: str) -> Bilingual:
        """With its depth."""
        return self.words[key].fill(shallow=_SHALLOW, deep=self.sizes.n_layers)

    def measures(self) -> dict[str, Measure]:
        """The first block's gradient beside the last one's, and how alike places are, before anything was learned."""
        return {"gradient": lambda run: run.first_gradients[0] / run.first_gradients[-1], "alike": self.alike}

    @torch.no_grad()
    def alike(self, run: Taught) -> float:
        """How alike the vectors of different places are at the beginning: their cosine, 1 for all the same."""
        torch.manual_seed(run.seed)
        model = run.task.make()
        rows = functional.normalize(model.hidden(self.windows[:_WINDOWS, :-1]), dim=-1)  # (N, T, C)
        cosines = rows @ rows.mT  # (N, T, T)
        apart = ~torch.eye(rows.shape[1], dtype=torch.bool)
        return float(cosines[:, apart].mean())


class DropoutLesson(MeasuredLesson):
    """Dropout of 0, 0.1, 0.2 and 0.5."""

    def tasks(self) -> dict[str, Assignment]:
        """One with each rate, of what its parts add and of its attention weights."""
        return {key: self.on_text(GPT, dropout=rate, attention_dropout=rate) for key, rate in _RATES.items()}

    def title(self, key: str) -> Bilingual:
        """The rate."""
        return self.words["rate"].fill(rate=_RATES[key])

    def measures(self) -> dict[str, Measure]:
        """The loss on what it has read, and how far that is from the loss on what it has not."""
        read_before = self.room.windows_read(len(self.windows))
        return {
            "learned": lambda run: held_out_loss(run.model, read_before),
            "gap": lambda run: held_out_loss(run.model, self.windows) - held_out_loss(run.model, read_before),
        }

    def values(self, rows: Rows) -> dict[str, float]:
        """The rate of the best."""
        return {"rate": _RATES[rows["best"].key]}


class WidthLesson(MeasuredLesson):
    """The same model in four widths, each twice as wide as the one before."""

    def tasks(self) -> dict[str, Assignment]:
        """One of each width."""
        return {key: self.on_text(GPT, d_model=self.sizes.d_model // part) for key, part in _PARTS.items()}

    def title(self, key: str) -> Bilingual:
        """The width."""
        return self.words["title"].fill(width=self.sizes.d_model // _PARTS[key])

    def measures(self) -> dict[str, Measure]:
        """How many numbers the table of tokens has."""
        return {"table": lambda run: float(run.model.tokens.weight.numel())}
