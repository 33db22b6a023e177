"""``kotha train``: from a data folder, a table of pairs, or images, to a run folder."""

import os
import shlex
from pathlib import Path
from typing import Annotated, Any

from kotha.cli.flags import InLanguage, More, OfPairs, flag, from_toml, from_words
from kotha.cli.naming import place
from kotha.cli.spoken import said, tell
from kotha.cli.stopping import StoppedError
from kotha.cli.terminal import print_json, print_table, results, table
from kotha.cli.training_display import TrainingDisplay, label, readable
from kotha.i18n.message import Message

Number = Annotated[int | None, flag("Overrides what is chosen.")]


def train(
    data: Annotated[
        Path, flag("A data folder, made by `kotha prepare`; or a table of pairs: tsv, csv, jsonl; or images.")
    ],
    /,
    *,
    out: Annotated[Path, flag("The run folder to make, or to go on with.")],
    minutes: Annotated[float | None, flag("How long it may take; 10 where nothing else says it.")] = None,
    preset: Annotated[str | None, flag("Exact name of a preset; left out, the sizes are chosen.")] = None,
    recipe: Annotated[str | None, flag("course, classic or modern; left out, what suits the data.")] = None,
    steps: Number = None,
    checkpoint_every: Number = None,
    seed: Number = None,
    from_: Annotated[
        str | None, flag("Start from these weights: a run, a model or Hugging Face folder, or box.", name="--from")
    ] = None,
    lora: Annotated[int | None, flag("With --from: learn only an addition of this rank to the weights.")] = None,
    teacher: Annotated[tuple[str, ...], flag("A trained model to learn from too; may be given again.")] = (),
    config: Annotated[Path | None, flag("A TOML file with more settings.")] = None,
    set_: More = (),
    pairs: OfPairs = OfPairs(),  # noqa: B008 - frozen
    resume: Annotated[bool, flag("Go on from the last checkpoint in --out.")] = False,
    shard: Annotated[bool, flag("Under torchrun: each process keeps a part (FSDP).")] = False,
    tensorboard: Annotated[bool, flag("Also write events for TensorBoard.")] = False,
    prompt: Annotated[str, flag("What the samples begin with.")] = "",
    language: InLanguage = "en",
    as_json: Annotated[bool, flag("The summary as JSON on stdout.", name="--json")] = False,
) -> None:
    """Train a model; stop with Ctrl-C, go on with --resume.

    Sizes, batch and rates follow from the data and the time: `kotha train data --minutes 10 --out run`. A gpt preset
    learns next tokens, a bert preset masked words. A table of pairs makes a translator: `kotha train pairs.tsv --preset
    pocket-seq2seq --out run`; images, in a folder for each class or an .npz archive, one that tells them apart: `kotha
    train images --out run`. With --from a model that has learned before goes on (fine-tuning),
    under the data's tokenizer if that is another. With --teacher a gpt also learns from models that you trained before
    (distillation), and from several it becomes better than each. On several GPUs or machines:
    `torchrun --nproc-per-node 8 -m kotha train …`, with --shard for models that one cannot hold.
    """
    import kotha

    flags = {"steps": steps, "checkpoint_every": checkpoint_every, "seed": seed, "lora": lora}
    given = {name: value for name, value in flags.items() if value is not None}
    asked: dict[str, Any] = {"data": data, "out": out, "minutes": minutes, "preset": preset, "recipe": recipe}
    asked |= {"start": from_, "teachers": [place(each) for each in teacher], **vars(pairs), "resume": resume}
    asked |= {"shard": shard, "tensorboard": tensorboard, "prompt": prompt}
    is_first, alone = os.environ.get("RANK", "0") == "0", os.environ.get("WORLD_SIZE", "1") == "1"
    with TrainingDisplay(speaks=is_first) as display:
        heard = {"on_event": display.show, "on_remark": display.say}
        run = kotha.train(**{**asked, **heard, **from_toml(config), **from_words(set_), **given})
    if not is_first:
        return
    summary = run.summary
    _tell(out, summary, as_json)
    if summary["stopped"]:
        go_on = shlex.join(["kotha", "train", str(data), "--out", str(out), "--resume"])
        raise StoppedError(
            "stopped at step {steps:,} and saved; go on with: {go_on}",
            steps=summary["steps"],
            go_on=go_on,
            alone=alone,
        )


def _tell(out: Path, summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(summary)
        return
    unmeasured = summary["stopped"] and summary["best_step"] is None
    shown = _held_out(out, summary) | ({"best_step", "loss_nats"} if unmeasured else set())
    rest = {name: value for name, value in summary.items() if name not in shown and name != "validation"}
    rows = [[label(name), readable(name, value)] for name, value in rest.items()]
    for name, value in summary.get("validation", {}).items():
        rows.append([Message("validation {what}", what=label(name)), readable(name, value)])
    results().print(table(str(out), [Message("summary"), ""], rows))
    if unmeasured:
        results().print(
            said(Message("It was stopped before it was first measured, so it has no loss and no best step yet."))
        )
    results().print(said(Message("Report: {path} (open it in a browser)", path=out / "report.html")), markup=False)


def _held_out(out: Path, summary: dict[str, Any]) -> set[str]:
    """Show what a run from examples reached on the part that was held out; the names of the figures that this tells."""
    if "bleu" in summary:
        from kotha.evaluation.translation import TranslationScore, translation_table

        translated = TranslationScore.of_summary(summary)
        print_table(translation_table(translated, str(out)))
        return set(translated.to_dict())
    if "confusion" in summary:
        from kotha.evaluation.classification import ClassificationScore, classes_table
        from kotha.finetune.classify import PAGE

        told = ClassificationScore.of_summary(summary)
        print_table(classes_table(told, str(out)))
        if told.confusion:
            tell(Message("confusion matrix: {path} (open it in a browser)", path=out / PAGE))
        return set(told.to_dict())
    return set()
