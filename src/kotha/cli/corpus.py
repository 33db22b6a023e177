"""``kotha corpus``: write the built-in corpus, or inspect a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

from kotha.cli.language import log, translate
from kotha.cli.options import Field, OnErrors, Paths
from kotha.cli.terminal import Output, Table, corpus_listeners, progress
from kotha.i18n.message import Message, Plural, Text

if TYPE_CHECKING:
    from kotha.api.data import CorpusReport


def stories(*, documents: int = 1000, seed: int = 0, kind: tuple[str, ...] = (), out: Path | None = None) -> None:
    """Write documents from the built-in corpus: original Bangla stories, news items and encyclopaedia entries.

    The documents are generated from a grammar. In a .jsonl file, each line also contains the document's kind and its
    log_probability under the grammar. On average, no model can predict the documents better than the grammar does.

    Example: `kotha corpus stories --documents 3000 --out stories.jsonl`

    Args:
        documents: Number of documents to write.
        seed: Random seed; the same seed gives the same documents.
        kind: Kind of document: story, news or entry (default: all three).
        out: Output file, .jsonl or .txt (default: stdout).
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
    """Write questions and answers about built-in stories, as training data for `kotha finetune instruct`.

    Each line of the file contains an instruction (the paragraph and the question), its answer and the story number.

    Example: `kotha corpus questions --stories 200 --out questions.jsonl`

    Args:
        out: Output file, .jsonl.
        stories: Number of stories to write questions about.
        per_story: Maximum number of questions per story.
        seed: Random seed; the same seed gives the same questions.
        whole: Include the whole story in each question, not only the paragraph with the answer.
    """
    import kotha

    _, count = kotha.write_questions(out, stories, seed=seed, per_story=per_story, whole=whole)
    counted = Plural("{n} question", "{n:,} questions", n=count)
    log(Message("{counted} (stories: {stories:,}) in {out}", counted=counted, stories=stories, out=out))


def inspect(paths: Paths, /, *, field: Field = "text", language: str = "bn", errors: OnErrors = "skip") -> Output:
    """Report on a corpus: sizes, duplicates, language, effects of normalization, unreadable documents.

    Example: `kotha corpus inspect texts`

    Args:
        language: Two-letter code of the expected language; KOTHA_LANGUAGE sets the language of the output.
    """
    from kotha.api.data import inspect_corpus

    with corpus_listeners() as listeners:
        report = inspect_corpus(paths, field=field, language=language, errors=errors, **listeners)
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
    lengths = "{shortest_characters:,} / {median_characters:,} / {longest_characters:,} characters"
    shares = list(report.script_shares.items())[:5]
    scripts = ", ".join(translate(Message("{name} {share:.1%}", name=script, share=share)) for script, share in shares)
    changed = ", ".join(f"{rule} {count:,}" for rule, count in report.normalization.items())
    rows: list[list[Text]] = [
        *[[label, f"{count:,}"] for label, count in counts.items()],
        [Message("documents in {language}", language=report.language), f"{report.language_share:.1%}"],
        [Message("shortest / median / longest"), Message(lengths, **vars(report))],
        [Message("scripts"), scripts],
        [Message("normalization would change"), changed],
        [Message("problems"), f"{report.problems:,}"],
    ]
    return Table("", [Message("corpus"), name], rows)
