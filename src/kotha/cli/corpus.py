"""``kotha corpus``: write the built-in stories, look into a corpus."""

import itertools
from pathlib import Path
from typing import Annotated

from cyclopts import App

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Paths, flag
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import print_json, problems_told, progress, results, table
from kotha.errors import UsageError
from kotha.i18n.message import Message, Plural, Text

app = App(name="corpus", help="Write the built-in stories; look into a corpus.", help_format="plaintext")


@app.command
def stories(
    *,
    documents: Annotated[int, flag("How many documents to write.")] = 1000,
    seed: Annotated[int, flag("Which corpus: the same seed gives the same documents.")] = 0,
    kind: Annotated[tuple[str, ...], flag("story, news or entry; all three when not given.")] = (),
    out: Annotated[Path | None, flag("A .jsonl or .txt file; standard output when not given.")] = None,
    language: InLanguage = "en",
) -> None:
    """Write the built-in corpus: original Bangla stories, news items and encyclopaedia entries, without end.

    A .jsonl line also holds the kind and log_probability: the floor that no model can beat on average.
    """
    import kotha
    from kotha.text.stories.corpus import stories as endless

    if documents < 1:
        raise UsageError("--documents {documents}: give at least 1", documents=documents)
    if out is None:
        for document in itertools.islice(endless(seed, kinds=kind or None), documents):
            print(document.text, end="\n\n")
        return
    with progress() as advance:
        kotha.write_stories(out, documents, seed=seed, kinds=kind, on_progress=advance)
    tell(Message("{counted} in {out}", counted=Plural("{n} document", "{n:,} documents", n=documents), out=out))


@app.command
def questions(
    *,
    out: Annotated[Path, flag("The .jsonl file to write.")],
    stories: Annotated[int, flag("How many stories to ask about.")] = 200,
    per_story: Annotated[int, flag("Questions about each, at most.")] = 3,
    seed: Annotated[int, flag("Which stories: the same seed gives the same questions.")] = 0,
    whole: Annotated[bool, flag("Give all of a story to read, not the paragraph that answers.")] = False,
    language: InLanguage = "en",
) -> None:
    """Write questions about built-in stories, with the answers that their grammar knows, for `kotha adapt instruct`."""
    import kotha

    _, count = kotha.write_questions(out, stories, seed=seed, per_story=per_story, whole=whole)
    tell(
        Message(
            "{counted} (stories: {stories:,}) in {out}",
            counted=Plural("{n} question", "{n:,} questions", n=count),
            stories=stories,
            out=out,
        )
    )


@app.command
def inspect(
    paths: Paths,
    /,
    *,
    field: Field = "text",
    language: Annotated[
        str, flag("Two-letter code of the wanted language. What is said here is in that of KOTHA_LANGUAGE.")
    ] = "bn",
    errors: OnErrors = "skip",
    as_json: Json = False,
) -> None:
    """Say what is in a corpus: sizes, duplicates, language, what normalization would change, what is broken."""
    from kotha.text.corpus.report import inspect_corpus
    from kotha.text.corpus.sources import list_sources

    total = sum(source.size or 0 for source in list_sources(paths, errors=errors))
    done = 0
    with progress() as advance, problems_told() as problems:

        def read(n_bytes: int) -> None:
            nonlocal done
            done += n_bytes
            advance(Message("reading"), done, total)

        report = inspect_corpus(
            paths, field=field, language=language, errors=errors, on_problem=problems, on_bytes=read
        )
    if as_json:
        print_json(report)
        return
    rows: list[list[Text]] = [
        [Message("files"), f"{report.files:,}"],
        [Message("documents"), f"{report.documents:,}"],
        [Message("bytes"), f"{report.bytes:,}"],
        [Message("characters"), f"{report.characters:,}"],
        [Message("words"), f"{report.words:,}"],
        [Message("exact duplicates"), f"{report.duplicates:,}"],
        [Message("documents in {language}", language=report.language), f"{report.language_share:.1%}"],
        [
            Message("shortest / median / longest"),
            said(
                Message(
                    "{shortest:,} / {median:,} / {longest:,} characters",
                    shortest=report.shortest_characters,
                    median=report.median_characters,
                    longest=report.longest_characters,
                )
            ),
        ],
        [
            Message("scripts"),
            ", ".join(
                said(Message("{name} {share:.1%}", name=name, share=share))
                for name, share in list(report.script_shares.items())[:5]
            ),
        ],
        [
            Message("normalization would change"),
            ", ".join(f"{rule} {count:,}" for rule, count in report.normalization.items()),
        ],
        [Message("problems"), f"{report.problems:,}"],
    ]
    results().print(table("", [Message("corpus"), ", ".join(paths)], rows))
