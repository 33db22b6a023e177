"""Blind comparison of models by human judges, from Python."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kotha.api import AnyPath
from kotha.api.model import load
from kotha.api.progress import displayed
from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.evaluation.judge.results import BlindPair as BlindPair
from kotha.evaluation.judge.results import Choice as Choice
from kotha.evaluation.judge.results import judging_tables as judging_tables
from kotha.evaluation.judge.session import JudgingSession as JudgingSession
from kotha.evaluation.judge.session import read_prompts, write_continuations
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import OnProgress, Option
from kotha.storage.status import exists

_MOST_ROWS = 64


@displayed
@checked(SamplingSettings)
def judge(
    models: Sequence[AnyPath] = (),
    prompts: AnyPath | Sequence[str] | None = None,
    *,
    out: AnyPath,
    tokens: int = 60,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    **how: Any,
) -> JudgingSession:
    """Let models continue prompts, and save the continuations as blind pairs for people to judge.

    ``prompts`` is a list, or a file with one prompt per line. Without models, the existing comparison in ``out`` is
    opened. ``how`` accepts the fields of ``SamplingSettings``. On the result, ``left_for`` returns a judge's remaining
    pairs, ``record`` saves a judgement, ``page`` writes a page for judges without Kotha, ``collect`` reads the files
    that the page saves, and ``result`` returns the ranking.

    >>> judging = kotha.judge(["run", "other"], ["নদীর ধারে", "মা"], out="judging", tokens=5)
    >>> pair = judging.left_for("মিনা")[0]
    >>> judging.record("মিনা", pair.id, "left")
    >>> judging.result().judges
    {'মিনা': 1}
    """
    folder = Path(out)
    if not models:
        return JudgingSession.open(folder)
    names = [os.fspath(each) for each in models]
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError("{models}: specify two or more different models", models=Option("models", names))
    if prompts is None:
        raise UsageError("prompts are required: a file with one prompt per line, or a list")
    if exists(folder):
        raise UsageError(
            "{folder} already exists; resume it without naming models, or choose another folder", folder=folder
        )
    prompt_list = (
        read_prompts(Path(prompts)) if isinstance(prompts, str | os.PathLike) else list(dict.fromkeys(prompts))
    )
    settings = SamplingSettings(seed=seed, **how)
    rows = max(1, min(len(prompt_list), _MOST_ROWS))
    written = write_continuations(
        names, lambda name: load(name).engine(rows), prompt_list, tokens, settings, on_progress
    )
    return JudgingSession.start(folder, prompt_list, written, seed, {"tokens": tokens, "seed": seed, **how})
