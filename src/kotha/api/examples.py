"""Train models on examples (translators on tables of pairs, classifiers on images), and score them.

Each ``measure_`` function scores a new model on the held-out examples, and writes the page for its run.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from kotha.api import AnyPath
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import InstallCommand, UsageError
from kotha.evaluation.classification import ClassificationScore, classes_document, evaluate_classifier, evaluate_images
from kotha.evaluation.instructions import evaluate_instructions
from kotha.evaluation.translation import evaluate_pairs, translations_document
from kotha.finetune import examples as finetune
from kotha.finetune import pairs
from kotha.finetune.classify import PAGE
from kotha.finetune.examples import ExamplesRequest
from kotha.finetune.images import ClassifyImages
from kotha.finetune.pairs import TranslatePairs
from kotha.finetune.splits import Parts
from kotha.i18n.message import Message, OnRemark, Option
from kotha.storage.atomic import atomic_write
from kotha.text.choices import Errors
from kotha.text.corpus.documents import field_names
from kotha.text.corpus.pairs import read_text_pairs
from kotha.text.shards import prepare_commands
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.request import TrainRequest

# Maximum number of test conversations, because generating the answers is slow.
_MAX_CONVERSATIONS = 300


def train_on_examples(
    data: AnyPath,
    folder: RunFolder,
    request: TrainRequest,
    of_pairs: dict[str, Any] | None,
    *,
    resume: bool = False,
    **listeners: Any,
) -> None:
    """Train a translator on a table of pairs or a classifier on images, or resume such a run.

    ``of_pairs`` holds the options for a table, or is None for images; ``listeners`` are on_event and on_remark.
    """
    use = ClassifyImages(measure_images) if of_pairs is None else TranslatePairs(measure_pairs)
    if resume:
        request.check_resumes()
        finetune.resume(use, folder, dict(request.changes), **listeners)
        return
    examples = ExamplesRequest(**vars(request), data=Path(data))
    if of_pairs is not None:
        examples = _with_pairs(examples, folder, **of_pairs)
    finetune.start(use, examples, folder, **listeners)


def _with_pairs(
    request: ExamplesRequest,
    folder: RunFolder,
    *,
    pair: tuple[str, str] | None,  # source and target fields; None: guess them
    reverse: bool,
    tokenizer: Tokenizer | AnyPath | None,
    validation: AnyPath | None,
    test: AnyPath | None,
    errors: Errors,
) -> ExamplesRequest:
    """Add the pairs in the table to the request, in the requested direction, with the held-out pairs."""
    data = request.data
    if request.origin is None and request.preset is None:
        template = (
            "{data} is a file, not a data folder; prepare texts first: {commands}; for a table of pairs, "
            "add a translation preset instead: {preset}"
        )
        preset = Option("preset", pairs.USUAL_PRESET)
        raise UsageError(template, data=data, commands=prepare_commands(data), preset=preset)
    if pair is None and data.suffix != ".parquet" and len(field_names(os.fspath(data))) < 2:
        template = (
            "{data} has fewer than two columns, so it is not a table of pairs; give tsv, csv or jsonl with a source "
            "and its target in each row, or prepare it as text: {commands}"
        )
        raise UsageError(template, data=data, commands=prepare_commands(data))
    folder.check_new()
    training = read_text_pairs(data, *(pair or (None, None)), errors=errors)
    if reverse:
        training = training.reversed
    fields = training.source_field, training.target_field
    held_out = [
        None if path is None else read_text_pairs(Path(path), *fields, errors=errors) for path in (validation, test)
    ]
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        tokenizer = import_tokenizer(os.fspath(tokenizer))
    return replace(request, data=training, validation=held_out[0], test=held_out[1], tokenizer=tokenizer)


# -- scores ----------------------------------------------------------------------------------------------------------


def measure_texts(best: Bundle, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
    """Score a text classifier."""
    score = evaluate_classifier(best, parts.test, parts.train)
    if len(score.baselines) < 2:
        template = "the TF-IDF baseline was skipped: it needs scikit-learn; install it with: {command}"
        say(Message(template, command=InstallCommand("baselines")))
    return _classes(score, run, "Evaluated on {n:,} texts held out from training and from model selection.")


def measure_images(best: Bundle, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
    """Score an image classifier."""
    lead = "Evaluated on {n:,} images held out from training and from model selection."
    return _classes(evaluate_images(best, parts.test, parts.train), run, lead)


def _classes(score: ClassificationScore, run: Path, lead: str) -> dict[str, Any]:
    title = Message("{name}: {n:,} classes", name=run.name, n=len(score.labels))
    atomic_write(run / PAGE, classes_document(score, title, Message(lead, n=score.examples)).html())
    return score.to_dict()


def measure_pairs(best: Bundle, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
    """Score a translator."""
    score = evaluate_pairs(best, parts.test, parts.train)
    lead = Message("Evaluated on {n:,} pairs held out from training and from model selection.", n=score.sentences)
    page = translations_document(score, parts.test, Message("{name}: translations", name=run.name), lead)
    atomic_write(run / pairs.PAGE, page.html())
    return score.to_dict()


def measure_answers(best: Bundle, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
    """Score a model's answers, before or after instruction tuning."""
    questions = parts.test.chosen(range(min(len(parts.test), _MAX_CONVERSATIONS)))
    return evaluate_instructions(best, questions, parts.train).to_dict()
