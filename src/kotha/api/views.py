"""Tables of inspection results, recorded forward passes, and head pruning."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kotha.api import AnyPath
from kotha.api.model import load
from kotha.api.model_input import read_input
from kotha.api.options import InputOptions
from kotha.i18n.message import Message, OnProgress, Text
from kotha.inside.attention import AttentionMaps, summarize
from kotha.inside.flow import Flow
from kotha.inside.heads.measuring import TextSource
from kotha.inside.heads.prune import Pruned as Pruned
from kotha.inside.heads.prune import prune
from kotha.inside.heads.study import Study as Study
from kotha.inside.hook_points import choose_layers
from kotha.inside.inputs import ModelInput
from kotha.inside.lens import Lens
from kotha.inside.trace import Activation, record
from kotha.inside.trace import write_arrays as write_arrays
from kotha.inside.view import View as View
from kotha.inside.view import to_json as to_json
from kotha.report.table import Table


def attention_table(found: AttentionMaps) -> Table:
    """Return a table with each head's averages and its strongest attention weights."""
    header = [
        Message("head"),
        Message("strongest attention"),
        Message("itself"),
        Message("one before"),
        Message("first"),
    ]
    rows = []
    for each in found.maps:
        queries, keys = found.lines[each.queries], found.lines[each.keys]
        for head in summarize(each):
            strongest = (f"{queries[query].text} → {keys[key].text} {share:.2f}" for query, key, share in head.looks)
            shares = (head.on_itself, head.on_previous, head.on_first)
            cells = ["-" if share is None else f"{share:.2f}" for share in shares]
            rows.append([f"{each.name}.{head.head}", "   ".join(strongest), *cells, f"{head.entropy_bits:.2f}"])
    return Table(Message("attention (means over the text)"), [*header, Message("entropy, bits")], rows)


def flow_tables(view: View[Flow]) -> list[Table]:
    """Return tables of shapes and statistics at every stage, and of each prediction."""
    found = [view.found.table()]
    for answer in view.found.answers:
        best = [[each.text, f"{each.probability:.2%}"] for each in answer.best]
        found.append(Table(answer.question, [Message("answer"), Message("probability")], best))
    return found


def lens_table(view: View[Lens]) -> Table:
    """Return a table of each layer's prediction at each position, and its distance from the final prediction."""
    found = view.found
    rows: list[list[str]] = []
    marks: dict[tuple[int, int], str] = {}
    for number, piece in enumerate(found.positions):
        predictions = [layer.positions[number] for layer in found.layers]
        marks |= {(number, column): "best" for column, each in enumerate(predictions, 1) if each.rank_of_answer == 1}
        best = [(prediction.best[0], prediction.rank_of_answer) for prediction in predictions]
        cells = [f"{each.text} {each.probability:.0%} (#{rank})" for each, rank in best]
        rows.append([piece.text, *cells, f"{predictions[-1].entropy_nats:.2f}"])
    first = Message("at") if found.family == "bert" else Message("after")
    header: list[Text] = [first, *(each.layer for each in found.layers), Message("entropy, nats")]
    means = [sum(each.kl_nats for each in layer.positions) / len(layer.positions) for layer in found.layers]
    away = [f"{each.layer} {mean:.2f}" for each, mean in zip(found.layers, means, strict=True)]
    title = Message("{question}? (#: rank of the final prediction in that layer)", question=found.question)
    return Table(
        title,
        header,
        rows,
        [Message("mean KL divergence from the model's final distribution, in nats: {away}", away=away)],
        marks,
    )


def record_pass(
    run: AnyPath, options: InputOptions, layers: Sequence[str | int] = (), hook_points: Sequence[str] = ()
) -> tuple[ModelInput, list[Activation]]:
    """Return the model's input, and the activations at every hook point of one forward pass."""
    bundle = load(run, "cpu").bundle
    given = read_input(bundle, options)
    return given, record(bundle.model, given, choose_layers(bundle.model, layers), hook_points or None)


def prune_heads(
    run: Path,
    out: Path,
    *,
    heads: Sequence[str] | None = None,
    count: int | None = None,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
    **source: Any,
) -> Pruned:
    """Write a model folder without the named heads or the least important ones, and measure both models.

    ``source`` is the text to measure on: ``text``, ``path``, ``field``, ``pair``, ``tokens``.
    """
    options: Any = {"heads": heads, "count": count, "overwrite": overwrite, "on_progress": on_progress}
    return prune(run, out, TextSource(run=run, **source), **options)
