"""The ledger: every matrix of one pass by its site, with the operation that made it and the matrices it read.

Sites are those of ``hook_points.py``, and between them the steps that a forward hook can see but a trace does not name:
``L.attention.query`` (before its norm and its turn), ``L.attention.joined`` (all heads side by side),
``L.feedforward.up``, ``gate`` and ``inner``, sums before a norm that comes last. Weights stand in it as matrices too,
turned so that a row times a column makes a number: ``L.attention.query.weight`` is (C, D) for each head.

Nothing is computed here that the model did not compute itself, but for shapes and the softmax at the end. Weights are
not copied.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from kotha.inside.heads.importance import places_of, silence
from kotha.inside.hook_points import layers, stacks
from kotha.inside.inputs import ModelInput
from kotha.inside.numbers.arithmetic import (
    Added,
    Bent,
    CellOperation,
    CellSource,
    Copied,
    Entry,
    Masked,
    MixedByWeights,
    Normed,
    Rotated,
    RowTimesColumn,
    RowTimesRow,
    Softmaxed,
    looked_up,
    same,
)
from kotha.inside.trace import trace
from kotha.model.attention import Attention
from kotha.model.bert import BERT
from kotha.model.block import Block
from kotha.model.family import Model
from kotha.model.feedforward import SwiGLU
from kotha.model.lora import LowRankLinear
from kotha.model.norm import RMSNorm
from kotha.model.position import LearnedPositions, NoPositions
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT

NUMBERS, WORDS, CLASSES, TABLE = "numbers", "words", "classes", "table"


def keep(model: Model, given: ModelInput, silenced: Sequence[str] = ()) -> "Ledger":
    """Let a model read, and keep every matrix of it; ``silenced`` heads add nothing."""
    ledger = Ledger(model, given, silenced)
    with silence(model, silenced), trace(model) as seen, _Watched(model) as watched:
        ledger.output = given.pass_through(model)
    ledger.seen = {site: seen.passes(site) for site in seen} | watched.found
    ledger.lay_out()
    return ledger


class _Watched:
    """Steps inside the parts, by hooks that go with the ``with``."""

    def __init__(self, model: Model) -> None:
        self.found: dict[str, list[Tensor]] = {}
        self._model, self._hooks = model, ExitStack()

    def __enter__(self) -> "_Watched":
        for name, block in layers(self._model).items():
            for part in ("attention", "cross"):
                attention = getattr(block, part)
                if attention is not None:
                    for step in ("query", "key", "value", "query_norm", "key_norm"):
                        self._after(getattr(attention, step), f"{name}.{part}.{step}")
            for step in ("up", "gate"):
                if hasattr(block.feedforward, step):
                    self._after(getattr(block.feedforward, step), f"{name}.feedforward.{step}")
            self._before(block.feedforward.down, f"{name}.feedforward.inner")
            for part in ("attention", "cross", "feedforward"):
                if getattr(block, f"{part}_norm") is not None:
                    self._before(getattr(block, f"{part}_norm"), f"{name}.{part}_norm.input")
        if isinstance(self._model, BERT):
            self._after(self._model.segments, "segments")
            self._after(self._model.transform, "transform")
            self._after(self._model.transform_norm, "transform_norm")
            self._before(self._model.transform_norm, "transform_bent")
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()

    def _after(self, module: nn.Module, name: str) -> None:
        self._hooks.enter_context(
            module.register_forward_hook(lambda _module, _inputs, output: self._found(name, output))
        )

    def _before(self, module: nn.Module, name: str) -> None:
        self._hooks.enter_context(
            module.register_forward_pre_hook(lambda _module, inputs: self._found(name, inputs[0]))
        )

    def _found(self, name: str, value: Tensor) -> None:
        self.found.setdefault(name, []).append(value.detach())


class Ledger:
    """All matrices of a pass."""

    def __init__(self, model: Model, given: ModelInput, silenced: Sequence[str] = ()) -> None:
        self.model, self.given, self.silenced = model, given, tuple(silenced)
        self.entries: dict[str, Entry] = {}
        self.seen: dict[str, list[Tensor]] = {}
        self.output: Any = None
        self._silent = places_of(model, silenced)

    def __getitem__(self, site: str) -> Entry:
        return self.entries[site]

    def uses(self, site: str) -> list[str]:
        """What is made of a matrix, in the order of the arithmetic."""
        return [
            each.site
            for each in self.entries.values()
            if each.operation is not None and site in each.operation.operands
        ]

    @property
    def n_bytes(self) -> int:
        """What it holds in memory, weights aside."""
        return sum(each.nbytes for passes in self.seen.values() for each in passes)

    # -- putting together -----------------------------------------------------------------------------------------

    def lay_out(self) -> None:
        """Give every matrix its place, from the first lookup to the last softmax."""
        lines = list(self.given.lines)
        memory: str | None = None
        for order, (name, stack) in enumerate(stacks(self.model).items()):
            line = lines[order]
            stream = self._embed(line, order)
            for layer, block in layers(self.model).items():
                if layer.startswith(f"{name}."):
                    self._put(f"{layer}.residual_in", self._at(f"{layer}.residual_in"), line, NUMBERS, same(stream))
                    if isinstance(self.model, BERT) and layer == "blocks.0":
                        self._norm(f"{layer}.residual_in", stream, self.model.embedding_norm, "embedding_norm", line)
                    stream = self._layer(layer, block, line, memory)
            end = "norm" if name == "blocks" else f"{name}.norm"
            self._norm(end, stream, stack.norm, end, line)
            memory = stream = end
        self._answer(stream, lines[-1])

    def _at(self, site: str, order: int = -1) -> Tensor:
        """What a place showed, without the batch of one."""
        return self.seen[site][order][0]

    def _put(
        self, site: str, values: Tensor, rows: str, columns: str, operation: CellOperation | None = None, **heads: Any
    ) -> str:
        self.entries[site] = Entry(site, values.detach().cpu(), rows, columns, operation, **heads)
        return site

    def _given(self, site: str, values: Tensor, rows: str = NUMBERS, columns: str = NUMBERS, **heads: Any) -> str:
        return site if site in self.entries else self._put(site, values, rows, columns, **heads)

    def _weight(self, site: str, module: nn.Linear) -> tuple[str, str | None]:
        """A matrix as it is multiplied, (in, out), and its bias, (1, out)."""
        weight = module.merged() if isinstance(module, LowRankLinear) else module.weight
        self._given(f"{site}.weight", weight.mT)
        if module.bias is None:
            return f"{site}.weight", None
        return f"{site}.weight", self._given(f"{site}.bias", module.bias[None])

    def _product(self, site: str, values: Tensor, rows: str, left: str, module: nn.Linear, name: str = "") -> str:
        return self._put(site, values, rows, NUMBERS, RowTimesColumn(left, *self._weight(name or site, module)))

    def _norm(
        self, site: str, stream: str, module: nn.Module, name: str, rows: str, values: Tensor | None = None
    ) -> None:
        values = self._at(site) if values is None else values
        operation: CellOperation = same(stream)
        if isinstance(module, RMSNorm):
            gain = self._given(f"{name}.weight", module.weight[None])
            operation = Normed(stream, gain, None, module.eps)
        elif isinstance(module, nn.LayerNorm):
            gain = self._given(f"{name}.weight", module.weight[None])
            operation = Normed(stream, gain, self._given(f"{name}.bias", module.bias[None]), module.eps)
        self._put(site, values, rows, NUMBERS, operation)

    # -- from pieces to vectors -----------------------------------------------------------------------------------

    def _embed(self, line: str, order: int) -> str:
        if isinstance(self.model, ViT):
            return self._embed_image(self.model, line)
        assert not hasattr(self.model, "body"), "a classifier is refused by whoever has the input"
        model: Any = self.model
        ending = "" if len(self.given.lines) == 1 else f".{line}"
        ids = [int(piece.id or 0) for piece in self.given.lines[line]]
        table = self._given("tokens.weight", model.tokens.weight, WORDS)
        tokens = self._put(f"tokens{ending}", self._at("tokens", order), line, NUMBERS, looked_up(table, ids))
        parts, factors = [tokens], [math.sqrt(model.config.d_model) if isinstance(model, Seq2Seq) else 1.0]
        if isinstance(model, BERT):
            which = self.given.inputs[1][0].tolist()
            sentences = self._given("segments.weight", model.segments.weight, TABLE)
            parts.append(self._put("segments", self._at("segments"), line, NUMBERS, looked_up(sentences, which)))
            factors.append(1.0)
        places = self._places(model.positions, len(ids), line, ending)
        if places is None and len(parts) == 1 and factors == [1.0]:
            return tokens
        if places is not None:
            parts.append(places)
            factors.append(1.0)
        added = Added(tuple(parts), tuple(factors))
        return self._put(f"positions{ending}", self._at("positions", order), line, NUMBERS, added)

    def _places(self, positions: NoPositions, count: int, line: str, ending: str) -> str | None:
        """What each place adds, where places are added."""
        if isinstance(positions, LearnedPositions):
            table = self._given("places.weight", positions.table.weight, TABLE)
            values = positions.table.weight[:count]
            return self._put(f"places{ending}", values, line, NUMBERS, looked_up(table, range(count)))
        width, device = self.model.config.d_model, next(self.model.parameters()).device
        waves = positions(torch.zeros(1, count, width, device=device), torch.arange(count, device=device))[0]
        return self._put(f"places{ending}", waves, line, NUMBERS) if bool(waves.any()) else None

    def _embed_image(self, model: ViT, line: str) -> str:
        cut = model.patches
        images = self.given.inputs[0]
        rows, columns = cut.grid(images)
        squares = images.reshape(-1, cut.n_channels, rows, cut.patch_size, columns, cut.patch_size)
        flat = squares.permute(0, 2, 4, 1, 3, 5).flatten(1, 2).flatten(2)[0]
        pixels = self._put("pixels", flat, "squares", "pixels")
        self._product("patches", self._at("patches"), "squares", pixels, cut.projection, "patches.projection")
        first = self._given("class_token", model.class_token[None])
        whole = torch.cat((model.class_token[None].cpu(), self._at("patches").cpu()))

        def find(row: int, column: int) -> CellSource:
            return CellSource(first, 0, column) if row == 0 else CellSource("patches", row - 1, column)

        self._put("sequence", whole, line, NUMBERS, Copied((first, "patches"), find))
        places = model.positions(rows, columns)
        self._put("positions", places, line, NUMBERS)
        return self._put("embedded", self._at("blocks.0.residual_in"), line, NUMBERS, Added(("sequence", "positions")))

    # -- a layer --------------------------------------------------------------------------------------------------

    def _layer(self, name: str, block: Block, line: str, memory: str | None) -> str:
        stream = f"{name}.residual_in"
        parts = ["attention", *(["cross"] if block.cross is not None else []), "feedforward"]
        sums = {"attention": f"{name}.residual_mid", "cross": f"{name}.residual_cross"}
        for at, part in enumerate(parts):
            site, norm = f"{name}.{part}", getattr(block, f"{part}_norm")
            if block.norm_order == "pre":
                self._norm(f"{site}_norm", stream, norm, f"{site}_norm", line)
                added = self._part(site, block, f"{site}_norm", line, memory)
                following = f"{name}.{parts[at + 1]}_norm.input" if part != "feedforward" else f"{name}.residual_out"
                total = sums.get(part, f"{name}.residual_out")
                stream = self._put(total, self._at(following), line, NUMBERS, Added((stream, added)))
            else:
                added = self._part(site, block, stream, line, memory)
                total = self._put(f"{site}_sum", self._at(f"{site}_norm.input"), line, NUMBERS, Added((stream, added)))
                self._norm(f"{site}_norm", total, norm, f"{site}_norm", line)
                stream = f"{site}_norm"
        if block.norm_order == "post":
            stream = self._put(f"{name}.residual_out", self._at(f"{name}.residual_out"), line, NUMBERS, same(stream))
        return stream

    def _part(self, site: str, block: Block, x: str, line: str, memory: str | None) -> str:
        if site.endswith("feedforward"):
            return self._feedforward(site, block, x, line)
        crosses = site.endswith("cross")
        attention = block.cross if crosses else block.attention
        assert attention is not None, "the layer has it"
        return self._attention(site, attention, x, memory if crosses and memory is not None else x)

    def _feedforward(self, site: str, block: Block, x: str, line: str) -> str:
        part = block.feedforward
        up = self._product(f"{site}.up", self._at(f"{site}.up"), line, x, part.up)
        if isinstance(part, SwiGLU):
            gate = self._product(f"{site}.gate", self._at(f"{site}.gate"), line, x, part.gate)
            bent = Bent(gate, "silu", up)
        else:
            bent = Bent(up, self.model.config.activation)
        inner = self._put(f"{site}.inner", self._at(f"{site}.inner"), line, NUMBERS, bent)
        return self._product(site, self._at(site), line, inner, part.down, f"{site}.down")

    def _attention(self, site: str, attention: Attention, x: str, memory: str) -> str:
        queries, keys = self.given.lines_of(site)
        shared = [place for place, n_heads in enumerate(attention.shares) for _ in range(n_heads)]
        own: dict[str, Any] = {"heads": attention.heads, "places": tuple(range(len(attention.heads)))}
        lent: dict[str, Any] = {"heads": attention.heads, "places": tuple(shared)}
        rotation = None if site.endswith("cross") else self._rotation(queries)
        q = self._projected(site, attention, "query", "queries", x, queries, own, rotation)
        k = self._projected(site, attention, "key", "keys", memory, keys, lent, rotation)
        v = self._projected(site, attention, "value", "values", memory, keys, lent, None)
        scores = self._put(f"{site}.scores", self._at(f"{site}.scores"), queries, keys, RowTimesRow(q, k), **own)
        masked = self._at(f"{site}.masked_scores")
        if bool(masked.isneginf().any()):
            hiding = Masked(scores, f"{site}.masked_scores")
            scores = self._put(f"{site}.masked_scores", masked, queries, keys, hiding, **own)
        weights = self._put(f"{site}.weights", self._at(f"{site}.weights"), queries, keys, Softmaxed(scores), **own)
        silent = tuple(attention.heads[place] for place in self._silent.get(site, ()))
        mixed = self._at(f"{site}.head_outputs")  # (H, T, D)
        self._put(f"{site}.head_outputs", mixed, queries, NUMBERS, MixedByWeights(weights, v, silent), **own)
        width, heads = attention.d_head, attention.heads

        def find(row: int, column: int) -> CellSource:
            return CellSource(f"{site}.head_outputs", row, column % width, heads[column // width])

        joined = mixed.transpose(0, 1).flatten(1)
        self._put(f"{site}.joined", joined, queries, NUMBERS, Copied((f"{site}.head_outputs",), find, "join"))
        return self._product(site, self._at(site), queries, f"{site}.joined", attention.output, f"{site}.output")

    def _projected(
        self,
        site: str,
        attention: Attention,
        step: str,
        ends: str,
        x: str,
        line: str,
        heads: dict[str, Any],
        rotation: tuple[str, str] | None,
    ) -> str:
        """From vectors to queries, keys or values: product, norm, turn, as far as the model has them."""
        module: nn.Linear = getattr(attention, step)
        width = attention.d_head

        def split(values: Tensor) -> Tensor:
            return values.reshape(values.shape[0], -1, width).transpose(0, 1)  # (C, n D) -> (n, C, D)

        weight = module.merged() if isinstance(module, LowRankLinear) else module.weight
        by_head = self._given(f"{site}.{step}.weight", split(weight.mT), **heads)
        bias = None
        if module.bias is not None:
            bias = self._given(f"{site}.{step}.bias", split(module.bias[None]), **heads)
        norm = getattr(attention, f"{step}_norm", None)
        todo: list[tuple[str, Tensor, Callable[[str], CellOperation]]] = [
            (f"{site}.{step}", split(self._at(f"{site}.{step}")), lambda _: RowTimesColumn(x, by_head, bias))
        ]
        if isinstance(norm, RMSNorm):
            gain, eps = self._given(f"{site}.{step}_norm.weight", norm.weight[None]), norm.eps
            values = self._at(f"{site}.{step}_norm")  # already (n, T, D)
            todo.append((f"{site}.{step}_norm", values, lambda before: Normed(before, gain, None, eps)))
        if rotation is not None:
            values = self._at(f"{site}.{ends}")
            todo.append((f"{site}.{ends}", values, lambda before: Rotated(before, *rotation)))
        before = x
        for number, (name, values, made) in enumerate(todo):
            last = number == len(todo) - 1
            before = self._put(f"{site}.{ends}" if last else name, values, line, NUMBERS, made(before), **heads)
        return before

    def _rotation(self, line: str) -> tuple[str, str] | None:
        """Cosine and sine of the angles that places turn by, where they do."""
        positions: Any = getattr(self.model, "positions", None)
        if not isinstance(positions, NoPositions):
            return None
        turn = positions.rotation(
            torch.arange(len(self.given.lines[line]), device=next(self.model.parameters()).device)
        )
        if turn is None:
            return None
        ending = "" if len(self.given.lines) == 1 else f".{line}"
        return (
            self._given(f"cosines{ending}", turn.cos, line),
            self._given(f"sines{ending}", turn.sin, line),
        )

    # -- the answer -----------------------------------------------------------------------------------------------

    def _answer(self, stream: str, line: str) -> None:
        model: Any = self.model
        if isinstance(model, ViT):
            first = self._put("summary", self.entries[stream].values[:1], "answer", NUMBERS, same(stream))
            self._product("logits", self.seen["logits"][-1], "answer", first, model.head, "head")
            columns, line = CLASSES, "answer"
        else:
            if isinstance(model, BERT):
                stream = self._product("transform", self._at("transform"), line, stream, model.transform)
                bent = Bent(stream, "gelu")
                stream = self._put("transform_bent", self._at("transform_bent"), line, NUMBERS, bent)
                self._norm("transform_norm", stream, model.transform_norm, "transform_norm", line)
                stream = "transform_norm"
            self._product("logits", self._at("logits"), line, stream, model.head, "head")
            columns = WORDS
        logits = self.entries["logits"]
        self._put("logits", logits.values, line, columns, logits.operation)
        self._put("probabilities", logits.values.float().softmax(dim=-1), line, columns, Softmaxed("logits"))
