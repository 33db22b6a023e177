"""A data folder that is incomplete, modified or inconsistent is rejected with an error that names the file."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.text.conftest import trained

from kotha.errors import DataError, TokenizerError
from kotha.text.shards import Dataset, SplitWriter, dtype_for, write_description
from kotha.text.tokenizer.tokenizer import Tokenizer

TEXTS = ["নদীর ধারে গ্রাম।", "আকাশে মেঘ জমেছে।", "মা ডাকছেন।", "বৃষ্টি নামল।"]


@pytest.fixture
def tokenizer() -> Tokenizer:
    return trained("unigram")


@pytest.fixture
def folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    dtype = dtype_for(tokenizer.vocab_size)
    infos = {}
    for name, texts in {"train": TEXTS, "validation": TEXTS[:1]}.items():
        writer = SplitWriter(path, name, dtype, tokenizer.special["eos"], shard_tokens=12)
        for text in texts:
            writer.add(np.array(tokenizer.encode(text), "<u2"), len(text.encode()), len(text))
        infos[name] = writer.close()
    write_description(path, tokenizer, infos, {})
    return path


def test_what_was_written_is_read(folder: Path, tokenizer: Tokenizer) -> None:
    data = Dataset(folder)
    train = data["train"]
    assert [tokenizer.decode(ids) for ids in train] == TEXTS
    assert all(ids[-1] == tokenizer.special["eos"] for ids in train)
    assert len(train.shards) > 1, "the test wants documents in several shards"
    assert train.info.bytes == sum(len(text.encode()) for text in TEXTS)
    assert train.info.characters == sum(map(len, TEXTS))
    assert train.info.tokens == sum(len(shard) for shard in train.shards) == train.offsets[-1]
    assert len(data["validation"]) == 1


def test_documents_beyond_the_end_are_refused(folder: Path) -> None:
    with pytest.raises(IndexError, match="document 4 of 4"):
        Dataset(folder)["train"][4]


def test_ids_are_little_endian_on_disk(folder: Path, tokenizer: Tokenizer) -> None:
    first = (folder / "train-00000.bin").read_bytes()[:2]
    assert int.from_bytes(first, "little") == tokenizer.encode(TEXTS[0])[0]


@pytest.mark.parametrize(
    ("name", "changed", "wording"),
    [
        ("train-00000.bin", lambda data: data[:-2], r"train-00000\.bin is [\d,]+ bytes instead of [\d,]+"),
        ("train-00001.bin", lambda data: bytes([data[0] ^ 1]) + data[1:], r"train-00001\.bin has changed since"),
        ("train.offsets", None, r"train\.offsets is missing"),
    ],
)
def test_a_changed_file_is_rejected_by_name(folder: Path, name: str, changed, wording: str) -> None:
    data = (folder / name).read_bytes()
    (folder / name).unlink()
    if changed is not None:
        (folder / name).write_bytes(changed(data))
    with pytest.raises(DataError, match=wording):
        Dataset(folder)
    if name == "train-00001.bin":
        Dataset(folder, verify=False)  # not detectable from the file size


def test_swapped_shards_are_rejected_by_name(folder: Path) -> None:
    same = sorted(folder.glob("train-*.bin"))
    sizes = {}
    for path in same:
        sizes.setdefault(path.stat().st_size, []).append(path)
    pair = next((paths for paths in sizes.values() if len(paths) > 1), same[:2])
    first, second = pair[0].read_bytes(), pair[1].read_bytes()
    pair[0].write_bytes(second)
    pair[1].write_bytes(first)
    with pytest.raises(DataError, match=pair[0].name):
        Dataset(folder)


def test_a_foreign_tokenizer_is_refused(folder: Path) -> None:
    trained("bpe-words").save(folder)
    with pytest.raises(DataError, match="but the shards were encoded with"):
        Dataset(folder)


@pytest.mark.parametrize(
    ("change", "wording"),
    [
        ({"format": "other"}, "does not describe a Kotha data folder in format version 1"),
        ({"format_version": 99}, "does not describe a Kotha data folder in format version 1"),
        ({"dtype": "float64"}, "is not valid: .*dtype='float64'"),
        ({"splits": {"train": {"documents": 1}}}, "is not valid"),
        ({"splits": [1]}, "is not valid"),
    ],
)
def test_invalid_descriptions_are_rejected(folder: Path, change: dict, wording: str) -> None:
    path = folder / "dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match=wording):
        Dataset(folder)


def test_a_description_cannot_point_outside_its_folder(folder: Path) -> None:
    path = folder / "dataset.json"
    path.write_text(path.read_text().replace("train-00000.bin", "../../etc/passwd"))
    with pytest.raises(DataError, match="names a file outside its folder"):
        Dataset(folder)


@pytest.mark.parametrize(
    ("name", "wording"),
    [
        ("empty", "is not a data folder: it has no dataset.json; create one with `kotha prepare`"),
        ("nowhere", "nowhere not found; create a data folder with `kotha prepare`"),
        (
            "a b.txt",
            "a file, not a data folder; prepare the text first: kotha tokenizer train '{}' --out tok && kotha prepare",
        ),
        ("a.bin", "is a file; specify a data folder created with `kotha prepare`"),
        (
            "texts",
            "contains text files but is not a data folder; prepare the text first: kotha tokenizer train {} --out tok",
        ),
        ("demo", "is not a data folder; did you mean {}/data?"),
        ("run", "is a run or model folder; specify the data folder created with `kotha prepare`"),
    ],
)
def test_the_error_for_other_paths_says_what_to_do(tmp_path: Path, name: str, wording: str) -> None:
    for file in ("empty/.hidden", "a b.txt", "a.bin", "texts/a.txt", "demo/data/dataset.json", "run/config.json"):
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / file).touch()
    with pytest.raises(DataError, match=re.escape(wording.format(tmp_path / name))):
        Dataset(tmp_path / name)


def test_invalid_json_is_reported(folder: Path) -> None:
    (folder / "dataset.json").write_text('{"format": "kotha-dat')
    with pytest.raises(DataError, match=r"dataset\.json is corrupted"):
        Dataset(folder)


def test_a_missing_tokenizer_is_reported(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(TokenizerError, match="no tokenizer at"):
        Dataset(folder)


def test_an_unknown_split_lists_the_known(folder: Path) -> None:
    with pytest.raises(DataError, match="no split 'test'; it has train, validation"):
        Dataset(folder)["test"]


def change(folder: Path, **values: object) -> None:
    """Change values of the training split in ``dataset.json``."""
    description = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
    description["splits"]["train"] |= values
    (folder / "dataset.json").write_text(json.dumps(description), encoding="utf-8")


@pytest.mark.parametrize("wrong", [[0, 5, 2, 9, 12], [1], [0, 0, 0, 0, 10**9], [0, 1, 2, 3]])
def test_wrong_offsets_with_a_right_sum_are_rejected(folder: Path, wrong: list[int]) -> None:
    path = folder / "train.offsets"
    offsets = np.fromfile(path, "<u8")
    offsets[: len(wrong)] = wrong
    offsets.tofile(path)
    change(folder, offsets_sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(DataError, match=r"train.offsets does not match the shards of train"):
        list(Dataset(folder)["train"])


def test_a_shard_with_a_name_that_no_file_can_have_is_missing(folder: Path) -> None:
    change(folder, shards=[{"file": "x" * 5000, "tokens": 1, "sha256": ""}])
    with pytest.raises(DataError, match="xxx is missing; run `kotha prepare` again"):
        Dataset(folder)


def test_impossible_document_counts_are_rejected(folder: Path) -> None:
    change(folder, documents=2**63)
    with pytest.raises(DataError, match="documents=9223372036854775808 is not a count"):
        Dataset(folder)
