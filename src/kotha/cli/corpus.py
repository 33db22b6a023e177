"""``kotha corpus``: write the built-in stories, look into a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Paths, flag
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import Table, problems_told, progress, show
from kotha.i18n.message import Message, Plural, Text

if TYPE_CHECKING:
    from kotha.api.data import CorpusReport

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
    from kotha.api.data import built_in_stories, write_stories

    if out is None:
        for document in built_in_stories(documents, seed=seed, kinds=kind):
            print(document.text, end="\n\n")
        return
    with progress() as advance:
        write_stories(out, documents, seed=seed, kinds=kind, on_progress=advance)
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
    counted = Plural("{n} question", "{n:,} questions", n=count)
    tell(Message("{counted} (stories: {stories:,}) in {out}", counted=counted, stories=stories, out=out))


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
    from kotha.api.data import inspect_corpus

    how: Any = {"field": field, "language": language, "errors": errors}
    with progress() as advance, problems_told() as problems:
        report = inspect_corpus(paths, **how, on_progress=advance, on_problem=problems)
    show(report, as_json, _table(report, ", ".join(paths)))


def _table(report: "CorpusReport", name: str) -> Table:

    counts: dict[Text, int] = {
        Message("files"): report.files,
        Message("documents"): report.documents,
        Message("bytes"): report.bytes,
        Message("characters"): report.characters,
        Message("words"): report.words,
        Message("exact duplicates"): report.duplicates,
    }
    lengths = Message(
        "{shortest:,} / {median:,} / {longest:,} characters",
        shortest=report.shortest_characters,
        median=report.median_characters,
        longest=report.longest_characters,
    )
    shares = list(report.script_shares.items())[:5]
    scripts = ", ".join(said(Message("{name} {share:.1%}", name=script, share=share)) for script, share in shares)
    rows: list[list[Text]] = [
        *[[label, f"{count:,}"] for label, count in counts.items()],
        [Message("documents in {language}", language=report.language), f"{report.language_share:.1%}"],
        [Message("shortest / median / longest"), lengths],
        [Message("scripts"), scripts],
        [
            Message("normalization would change"),
            ", ".join(f"{rule} {count:,}" for rule, count in report.normalization.items()),
        ],
        [Message("problems"), f"{report.problems:,}"],
    ]
    return Table("", [Message("corpus"), name], rows)
