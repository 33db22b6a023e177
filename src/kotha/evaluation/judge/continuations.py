"""What models write for a judging: a continuation of each prompt, or an answer by one that was taught to answer."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kotha.errors import DataError
from kotha.generation.answers import Request, Result
from kotha.generation.conversation import was_taught
from kotha.generation.engine import Engine
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, OnProgress
from kotha.text.tokenizer.chat import ChatTemplate, Turn

_MOST_BYTES = 1 << 24


def read_prompts(path: Path) -> list[str]:
    """Prompts of a file: a line each; of .jsonl the field prompt, instruction or text.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.txt"
    ...     _ = file.write_text("নদীর ধারে\\n\\nমা\\n")
    ...     read_prompts(file)
    ['নদীর ধারে', 'মা']
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        lines = [line.strip() for line in text.decode().splitlines() if line.strip()]
        prompts = [_of_row(line) for line in lines] if path.suffix == ".jsonl" else lines
    except (UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            "{path} holds no prompts: {error}; give a line for each, or .jsonl with a prompt", path=path, error=error
        ) from error
    if not prompts or len(text) > _MOST_BYTES:
        raise DataError("{path} holds no prompts, or far too many to judge; give a line for each", path=path)
    return list(dict.fromkeys(prompts))


def _of_row(line: str) -> str:
    row = json.loads(line)
    if isinstance(row, str):
        return row
    return str(next(row[name] for name in ("prompt", "instruction", "question", "text") if name in row))


def write_continuations(
    names: Sequence[str],
    opened: Callable[[str], Engine],
    prompts: Sequence[str],
    tokens: int,
    settings: SamplingSettings,
    on_progress: OnProgress | None = None,
) -> dict[str, list[str]]:
    """What each model writes after each prompt, one model in memory at a time; all have the same seed at a prompt."""
    written: dict[str, list[str]] = {}
    for name in names:
        engine = opened(name)
        tokenizer = engine.tokenizer
        template = ChatTemplate.of(tokenizer) if tokenizer is not None and was_taught(engine) else None
        requests = []
        for number, prompt in enumerate(prompts):
            start: str | tuple[int, ...] = prompt
            if template is not None and tokenizer is not None:
                start = tuple(template.prompt(tokenizer, [Turn("user", prompt)]))
            how = replace(settings, seed=settings.seed + number)
            requests.append(Request(prompt=start, tokens=tokens, settings=how))
        before = len(written) * len(prompts)
        numbers = [engine.submit(request) for request in requests]
        results: dict[int, Result] = {}
        while engine.busy:
            results |= {event.number: event.result for event in engine.step() if event.result is not None}
            if on_progress is not None:
                on_progress(Message("writing"), before + len(results), len(names) * len(prompts))
        written[name] = [results[number].text.strip() for number in numbers]
    return written
