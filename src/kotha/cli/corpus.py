"""``kotha corpus``: write the built-in stories, look into a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

from kotha.cli.language import log, translate
from kotha.cli.options import Field, OnErrors, Paths
from kotha.cli.terminal import Output, Table, listening, progress
from kotha.i18n.message import Message, Plural, Text

if TYPE_CHECKING:
    from kotha.api.data import CorpusReport


def stories(*, documents: int = 1000, seed: int = 0, kind: tuple[str, ...] = (), out: Path | None = None) -> None:
    """Write the built-in corpus: original Bangla stories, news items and encyclopaedia entries, without end.

    A .jsonl line also holds the kind and log_probability: the floor that no model can beat on average.

    Args:
        documents: How many documents to write.
        seed: Which corpus: the same seed gives the same documents.
        kind: story, news or entry; all three when not given.
        out: A .jsonl or .txt file; standard output when not given.
    """
    from kotha.api.data import built_in_stories, write_stories

    if out is None:
        for document in built_in_stories(documents, seed=seed, kinds=kind):
            print(document.text, end="\n\n")
        return
    with progress() as advance:
        write_stories(out, documents, seed=seed, kinds=kind, on_progress=advance)
    log(Message("{counted} in {out}", counted=Plural("{n} document", "{n:,} documents", n=documents), out=out))


def questions(*, out: Path, stories: int = 200, per_story: int = 3, seed: int = 0, whole: bool = False) -> None:
    """Write questions about built-in stories, with the answers that their grammar knows, for `kotha finetune instruct`.

    Args:
        out: The .jsonl file to write.
        stories: How many stories to ask about.
        per_story: Questions about each, at most.
        seed: Which stories: the same seed gives the same questions.
        whole: Give all of a story to read, not the paragraph that answers.
    """
    import kotha

    _, count = kotha.write_questions(out, stories, seed=seed, per_story=per_story, whole=whole)
    counted = Plural("{n} question", "{n:,} questions", n=count)
    log(Message("{counted} (stories: {stories:,}) in {out}", counted=counted, stories=stories, out=out))


def inspect(paths: Paths, /, *, field: Field = "text", language: str = "bn", errors: OnErrors = "skip") -> Output:
    """Say what is in a corpus: sizes, duplicates, language, what normalization would change, what is broken.

    Args:
        language: Two-letter code of the wanted language. What is said here is in that of KOTHA_LANGUAGE.
    """
    from kotha.api.data import inspect_corpus

    with listening() as heard:
        report = inspect_corpus(paths, field=field, language=language, errors=errors, **heard)
    return Output(report, _table(report, ", ".join(paths)))


def _table(report: "CorpusReport", name: str) -> Table:
    counts: dict[Text, int] = {
        Message("files"): report.files,
        Message("documents"): report.documents,
        Message("bytes"): report.bytes,
        Message("characters"): report.characters,
        Message("words"): report.words,
        Message("exact duplicates"): report.duplicates,
    }
    told = "{shortest_characters:,} / {median_characters:,} / {longest_characters:,} characters"
    shares = list(report.script_shares.items())[:5]
    scripts = ", ".join(translate(Message("{name} {share:.1%}", name=script, share=share)) for script, share in shares)
    changed = ", ".join(f"{rule} {count:,}" for rule, count in report.normalization.items())
    rows: list[list[Text]] = [
        *[[label, f"{count:,}"] for label, count in counts.items()],
        [Message("documents in {language}", language=report.language), f"{report.language_share:.1%}"],
        [Message("shortest / median / longest"), Message(told, **vars(report))],
        [Message("scripts"), scripts],
        [Message("normalization would change"), changed],
        [Message("problems"), f"{report.problems:,}"],
    ]
    return Table("", [Message("corpus"), name], rows)
