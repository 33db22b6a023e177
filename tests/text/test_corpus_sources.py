"""Resolving names to files: folders, globs, links, extensions, and datasets on the Hugging Face hub."""

import os
import re
from pathlib import Path

import pytest

from kotha.errors import CorpusError, UsageError
from kotha.text.corpus import documents, sources
from kotha.text.corpus.documents import read_documents
from kotha.text.corpus.hub import hub_download
from kotha.text.corpus.problems import CorpusProblem
from kotha.text.corpus.sources import Source, list_sources


def plant(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def names(folder: Path, paths: list[str | Path], **options: object) -> list[str]:
    return [os.path.relpath(source.path, folder) for source in list_sources(paths, **options)]  # type: ignore[arg-type]


def test_a_folder_is_walked_in_sorted_order(tmp_path):
    plant(tmp_path, "b.txt", "a.jsonl", "z/1.csv", "c/2.tsv.gz", "c/10.txt", "B.TXT")
    assert names(tmp_path, [tmp_path]) == ["B.TXT", "a.jsonl", "b.txt", "c/10.txt", "c/2.tsv.gz", "z/1.csv"]


def test_other_files_in_a_folder_are_skipped_and_reported(tmp_path):
    plant(tmp_path, "a.txt", ".hidden.txt", ".git/x.txt", "notes.pdf", "b.json")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nothing")
    messages: list[CorpusProblem] = []
    assert names(tmp_path, [tmp_path], errors="skip", on_problem=messages.append) == ["a.txt"]
    reasons = {Path(problem.source).name: str(problem.reason) for problem in messages}
    assert reasons.keys() == {".hidden.txt", ".git", "notes.pdf", "b.json", "loop", "gone.txt"}
    assert reasons[".git"] == reasons[".hidden.txt"] == "skipped: hidden"
    assert reasons["loop"] == "skipped: a symlinked folder"
    assert reasons["notes.pdf"].startswith("skipped: unknown file extension '.pdf'; supported: .txt")
    assert "jq -c" in reasons["b.json"]
    assert reasons["gone.txt"] == "cannot be opened (No such file or directory)"


def test_a_dead_link_in_a_folder_raises_unless_skipped(tmp_path):
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nothing")
    with pytest.raises(CorpusError, match=r"gone\.txt: cannot be opened \(No such file or directory\); fix the input"):
        list_sources([tmp_path])


def test_a_folder_that_cannot_be_entered(tmp_path, monkeypatch):
    plant(tmp_path, "a.txt", "locked/b.txt")
    plain = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return plain(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CorpusError, match=r"locked: cannot be opened \(Permission denied\)"):
        list_sources([tmp_path])
    assert names(tmp_path, [tmp_path], errors="skip") == ["a.txt"]


def test_globs(tmp_path):
    plant(tmp_path, "a.txt", "b.txt", "c.jsonl", "d/e.txt", "README.md")
    assert names(tmp_path, [f"{tmp_path}/*.txt"]) == ["a.txt", "b.txt"]
    assert names(tmp_path, [f"{tmp_path}/**/*.txt"]) == ["a.txt", "b.txt", "d/e.txt"]
    assert names(tmp_path, [f"{tmp_path}/*"]) == ["a.txt", "b.txt", "c.jsonl", "d/e.txt"]
    with pytest.raises(CorpusError, match=re.escape(f"{tmp_path}/*.csv: no supported files found; supported: .txt")):
        list_sources([f"{tmp_path}/*.csv"])


def test_an_existing_file_takes_precedence_over_a_glob(tmp_path):
    plant(tmp_path, "a[1].txt", "a1.txt")
    assert names(tmp_path, [f"{tmp_path}/a[1].txt"]) == ["a[1].txt"]


def test_a_file_named_twice_is_read_once(tmp_path):
    plant(tmp_path, "a.txt", "b.txt")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    assert names(tmp_path, [tmp_path / "b.txt", tmp_path, f"{tmp_path}/*.txt"]) == ["b.txt", "a.txt"]


def test_other_extensions_are_listed_on_request(tmp_path):
    plant(tmp_path, "a.md", "b.txt", "c.md.gz", "d.log")
    found = list_sources([tmp_path], others=[".md"])
    assert [(Path(s.path).name, s.format) for s in found] == [("a.md", "txt"), ("b.txt", "txt")]


def test_a_pipe_is_not_read(tmp_path):
    plant(tmp_path, "a.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    assert names(tmp_path, [tmp_path]) == ["a.txt"]
    with pytest.raises(
        CorpusError, match=r"pipe\.txt: not a regular file; to read from a pipe, use - for standard input"
    ):
        list_sources([tmp_path / "pipe.txt"])


def test_sources_carry_format_compression_and_size_and_can_be_read_again(tmp_path):
    plant(tmp_path, "a.txt")
    found = list_sources([tmp_path])
    assert found == [Source(str(tmp_path / "a.txt"), "txt", None, 5)]
    assert [d.text for d in read_documents(found)] == ["a.txt"]


def test_names_without_files_are_errors(tmp_path):
    plant(tmp_path, "train.jsonl", "empty/notes.pdf")
    with pytest.raises(CorpusError, match=r"trian\.jsonl does not exist; did you mean 'train.jsonl'\?$"):
        list_sources([tmp_path / "trian.jsonl"])
    with pytest.raises(CorpusError, match=r"zzz does not exist; name an existing file or folder$"):
        list_sources([tmp_path / "zzz"])
    with pytest.raises(CorpusError, match=r"no/such\.txt does not exist; name an existing file or folder$"):
        list_sources([tmp_path / "no/such.txt"])
    with pytest.raises(CorpusError, match=r"empty: no supported files found; supported: \.txt"):
        list_sources([tmp_path / "empty"])
    with pytest.raises(CorpusError, match=r"embedded null (byte|character)"):
        list_sources(["a\0.txt"])
    with pytest.raises(CorpusError, match="File name too long"):
        list_sources(["a" * 5000 + ".txt"])


def test_a_file_name_that_is_not_utf8_can_be_printed(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")
    Path(path).write_text("x")
    [document] = read_documents([tmp_path])
    assert document.source.endswith("\\udcff.txt")
    document.source.encode()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A fake hub with one dataset: a function that creates files in it and returns the list of downloads."""
    fetched: list[str] = []

    def files(repository: str, kind: str) -> list[tuple[str, int | None]]:
        assert (repository, kind) == ("wikimedia/wikipedia", "dataset")
        found = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        return [(str(path.relative_to(tmp_path)), path.stat().st_size) for path in found]

    def with_files(*names: str) -> list[str]:
        plant(tmp_path, *names)
        return fetched

    monkeypatch.setattr(sources, "hub_files", files)
    monkeypatch.setattr(documents, "hub_download", lambda _, path, __: fetched.append(path) or tmp_path / path)
    return with_files


def chosen(name: str) -> list[str]:
    return [source.path for source in list_sources([name])]


def test_a_hub_data_set_is_chosen_by_split_and_configuration(hub):
    hub("README.md", "bn/train-0.txt", "bn/train-1.txt", "bn/test-0.txt", "en/train-0.txt", "as/train.txt")
    name = "hf:wikimedia/wikipedia"
    assert chosen(f"{name}:train:bn") == ["bn/train-0.txt", "bn/train-1.txt"]
    assert chosen(f"{name}:test:bn") == ["bn/test-0.txt"]
    assert chosen(f"{name}::as") == ["as/train.txt"]
    with pytest.raises(CorpusError, match=r"3 configurations; choose one as hf:owner/name:train:CONFIG: as, bn, en"):
        chosen(name)
    with pytest.raises(CorpusError, match=r"no configuration 'bnn'; did you mean 'bn'\?"):
        chosen(f"{name}:train:bnn")
    with pytest.raises(CorpusError, match=r"no split 'tset'; did you mean 'test'\?"):
        chosen(f"{name}:tset:bn")


def test_hub_files_are_fetched_one_at_a_time_and_read(hub):
    fetched = hub("data/train-0.txt", "data/train-1.txt", "data/validation-0.txt")
    found = read_documents(["hf:wikimedia/wikipedia"])
    assert fetched == []
    first = next(found)
    assert (first.text, first.source) == ("data/train-0.txt", "hf:wikimedia/wikipedia/data/train-0.txt")
    assert fetched == ["data/train-0.txt"]
    assert [document.text for document in found] == ["data/train-1.txt"]


def test_a_hub_data_set_without_files_or_split_names(hub):
    hub("load.py")
    with pytest.raises(CorpusError, match="no txt, jsonl, csv, tsv or parquet file in this dataset"):
        chosen("hf:wikimedia/wikipedia")
    hub("a.txt", "b.txt")
    assert chosen("hf:wikimedia/wikipedia") == ["a.txt", "b.txt"], "without split names it is taken whole"


@pytest.mark.parametrize("name", ["hf:", "hf:name", "hf:a/b/c", "hf:a/b:train:x:y"])
def test_invalid_hub_names_are_rejected(name):
    with pytest.raises(UsageError, match=r"is not a hub name; use the form hf:owner/name\[:split\[:config\]\]"):
        list_sources([name])


def test_hub_errors_are_reported(monkeypatch):
    import huggingface_hub

    class Api:
        def list_repo_tree(self, *_: object, **__: object) -> object:
            raise ConnectionError("Name or service not known")

        hf_hub_download = list_repo_tree

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    words = r"a/b: the hub cannot be reached \(Name or service not known\); to work offline, download the files"
    with pytest.raises(CorpusError, match=words):
        list_sources(["hf:a/b"])
    with pytest.raises(CorpusError, match=words):
        hub_download("a/b", "x.txt", "dataset")


def test_the_real_hub_lists_files_only(monkeypatch):
    import huggingface_hub
    from huggingface_hub import RepoFile, RepoFolder

    class Api:
        def list_repo_tree(self, repository: str, *, repo_type: str, recursive: bool) -> object:
            assert (repository, repo_type, recursive) == ("a/b", "dataset", True)
            yield RepoFolder(path="data", oid="1")
            yield RepoFile(path="data/train.jsonl.gz", size=7, oid="2")

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    assert list_sources(["hf:a/b"]) == [Source("data/train.jsonl.gz", "jsonl", "gz", 7, "a/b")]


def test_a_link_out_of_a_folder_is_reported_and_not_followed(tmp_path):
    plant(tmp_path, "secret.txt", "corpus/a.txt")
    (tmp_path / "corpus" / "b.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "corpus" / "c.txt").symlink_to(tmp_path / "corpus" / "a.txt")
    problems = []
    found = list_sources([tmp_path / "corpus"], on_problem=problems.append)
    assert [Path(each.path).name for each in found] == ["a.txt"], "c is a second name of a"
    [problem] = problems
    assert problem.source.endswith("b.txt") and "a symbolic link to a place outside the folder" in str(problem.reason)
    assert names(tmp_path / "corpus", [tmp_path / "corpus" / "b.txt"]) == ["b.txt"], "named by the user"


@pytest.mark.parametrize(
    "pattern", ["corpus/**/*.txt", "corpus/*.txt", "corpus/*", "corpus/*/*.txt", "corpus/?/[a-z].txt"]
)
def test_a_link_out_of_the_folder_of_a_glob_is_reported_and_not_followed(pattern, tmp_path, monkeypatch):
    plant(tmp_path, "secret.txt", "outside/s.txt", "corpus/a.txt", "corpus/d/a.txt")
    (tmp_path / "corpus" / "d" / "b.txt").symlink_to(tmp_path / "corpus" / "a.txt")
    for link, target in (("b.txt", "secret.txt"), ("d/c.txt", "secret.txt"), ("e", "outside")):
        (tmp_path / "corpus" / link).symlink_to(tmp_path / target)
    monkeypatch.chdir(tmp_path)
    for root in ("", f"{tmp_path}/"):
        problems = []
        found = list_sources([root + pattern], on_problem=problems.append)
        assert found and {os.path.realpath(each.path) for each in found} <= {
            str(tmp_path / "corpus" / "a.txt"),
            str(tmp_path / "corpus" / "d" / "a.txt"),
        }
        reasons = {str(each.reason) for each in problems}
        assert reasons == {"skipped: a symbolic link to a place outside the folder; to read it, name its target"}
