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

import itertools
from collections.abc import Mapping
from functools import partial

import torch
from torch.nn import functional

from kotha.course.lessons.learning import Assignment, Taught, held_out_loss
from kotha.course.lessons.measured import Measure, MeasuredLesson, Rows
from kotha.course.lessons.measuring import blind_loss, moved_by_shuffling, sighted_loss
from kotha.course.lessons.result import Sample, below
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

    def read(self, rows: Rows) -> list[Bilingual]:
        """What order is worth, and whether it leaks."""
        clear = all(below(rows[f"{n}_with"], rows[f"{n}_without"], "held_out") for n in ("one", "two"))
        leaks = below(rows["one_without"], rows["two_without"], "moved")
        return [self.say(key, rows) for key in ("bag", "worth" if clear else "unclear", *(["leak"] if leaks else []))]


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

    def read(self, rows: Rows) -> list[Bilingual]:
        """Which is better, and what room is left."""
        added, *joined = rows.values()
        best = min(joined, key=lambda each: each.mean("held_out"))
        verdict = "alike"
        if below(added, best, "held_out"):
            verdict = "added_wins"
        elif below(best, added, "held_out"):
            verdict = "joined_wins"
        return [self.say(key, {**rows, "best": best}) for key in (verdict, "room")]


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

    def read(self, rows: Rows) -> list[Bilingual]:
        """Whether it cheats, and whether it can still write."""
        masked, unmasked = (rows[key].figures for key in ("with", "without"))
        cheats = max(unmasked["held_out"]) < min(masked["held_out"]) / 2
        breaks = min(unmasked["blind"]) > max(masked["blind"])
        return [self.say("cheats" if cheats else "no_cheating", rows), self.say("breaks" if breaks else "writes", rows)]


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

    def read(self, rows: Rows) -> list[Bilingual]:
        """What they are worth, whether the gradient fades, and whether places blur."""
        deep, without = rows["deep_with"], rows["deep_without"]
        clear = all(below(rows[f"{n}_with"], rows[f"{n}_without"], "held_out") for n in ("shallow", "deep"))
        said = ["worth" if clear else "unclear", "fades" if below(without, deep, "gradient") else "reaches"]
        said += ["blurred"] if below(deep, without, "alike") else []
        return [self.say(key, rows) for key in said]


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

    def read(self, rows: Rows) -> list[Bilingual]:
        """Whether it learns by heart, what helps, and what slows."""
        without, *others = rows.values()
        best = min(others, key=lambda each: each.mean("held_out"))
        helps = max(best.figures["held_out"]) < min(without.figures["held_out"])
        said = [
            self.say("by_heart", rows),
            self.say("helps" if helps else "idle", {"best": best}, rate=_RATES[best.key]),
        ]
        if rows["half"].mean("learned") > without.mean("learned"):
            said.append(self.say("slows", rows, rate=_RATES["half"]))
        return said


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

    def read(self, rows: Rows) -> list[Bilingual]:
        """What width is worth, whether ever less, and what it costs."""
        in_order = list(rows.values())
        losses = [each.mean("held_out") for each in in_order]
        clear = all(below(b, a, "held_out") for a, b in itertools.pairwise(in_order))
        gains = [a - b for a, b in itertools.pairwise(losses)]
        growth = in_order[-1].mean("parameters") / in_order[0].mean("parameters")
        return [
            self.say("worth" if clear else "unclear", rows),
            self.say("less" if gains[-1] < gains[0] else "more", rows, first=gains[0], last=gains[-1]),
            self.say("cost", rows, growth=growth),
        ]
