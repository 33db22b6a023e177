"""Training an image classifier, from folders and archives to a model folder."""

import json
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.finetune.conftest import stopped_and_resumed

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.errors import CheckpointError, ConfigError, DataError, KothaError, UsageError
from kotha.finetune.classify import PAGE
from kotha.finetune.images import ClassifyImages
from kotha.model.config import ViTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.storage.images import read_labelled_images, read_picture

SIDE = 14
QUICK: dict[str, Any] = {"preset": "vit-digits", "image_size": SIDE, "d_model": 16, "n_heads": 2, "n_layers": 1}
QUICK |= {"batch_size": 8, "evaluate_every": 3, "steps": 6}


def shapes(n_images: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Flat and tall bars at random positions in a noisy square."""
    chance = np.random.default_rng(seed)
    images = chance.integers(0, 40, (n_images, SIDE, SIDE))
    labels = []
    for place, image in enumerate(images):
        at = chance.integers(2, SIDE - 3)
        (image if place % 2 else image.T)[at : at + 2] += 180
        labels.append("flat" if place % 2 else "tall")
    return images.astype(np.uint8), labels


def write_archive(file: Path, n_images: int = 80, **more: Any) -> Path:
    images, labels = shapes(n_images)
    np.savez(file, images=images, labels=np.array(labels), **more)
    return file


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_archive(tmp_path_factory.mktemp("shapes") / "shapes.npz")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> kotha.Run:
    """A run long enough to reach a good score."""
    long = {**QUICK, "steps": 60, "evaluate_every": 20, "batch_size": 16, "learning_rate": 5e-3, "dropout": 0.0}
    return kotha.train(archive, out=tmp_path_factory.mktemp("runs") / "run", **long)


def test_training_reaches_a_good_score_and_reports_baselines(run: kotha.Run) -> None:
    summary = run.summary
    assert (
        [each["label"] for each in summary["classes"]] == ["flat", "tall"]
        and summary["examples"] == 8
        and summary["seen"] == 0
    )
    assert summary["accuracy"] > 0.7 > summary["baselines"]["majority"]["accuracy"]
    assert 0 <= summary["baselines"]["nearest neighbour"]["accuracy"] <= 1
    assert run.model.config.labels == ("flat", "tall")  # type: ignore[attr-defined]
    assert (
        "held-out examples classified" in (run.path / PAGE).read_text(encoding="utf-8")
        and (run.path / "report.html").is_file()
    )
    parts = ClassifyImages().read_parts(run.path)
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [64, 8, 8]
    assert json.loads((run.path / "config.json").read_text(encoding="utf-8"))["training"]["augment"] == "move"


def test_it_classifies_files_and_can_be_evaluated_again(run: kotha.Run, archive: Path, tmp_path: Path) -> None:
    images, labels = shapes(2, seed=9)
    files = []
    for image, label in zip(images, labels, strict=True):
        files.append(tmp_path / f"{label}.npy")
        np.save(files[-1], image)
    answers = run.model.classify(files)
    assert sum(answers[0].probabilities.values()) == pytest.approx(1)
    assert run.model.classify(str(files[1])).probabilities == pytest.approx(answers[1].probabilities)
    assert run.model.evaluate(archive).seen == 64
    with pytest.raises(UsageError, match="why applies only to texts"):
        run.model.classify(files[0], why=True)


def test_folders_by_class_are_read_with_pillow_and_without(tmp_path: Path) -> None:
    image_room = pytest.importorskip("PIL.Image", reason="Pillow is not installed; it is the extra `images`")
    images, labels = shapes(12)
    for place, (image, label) in enumerate(zip(images, labels, strict=True)):
        folder = tmp_path / "images" / label
        folder.mkdir(parents=True, exist_ok=True)
        image_room.fromarray(image).save(folder / f"{place}.png")
    (tmp_path / "images" / ".hidden").mkdir()
    found = read_labelled_images(tmp_path / "images", SIDE, 1)["train"]
    assert sorted(found.labels) == sorted(labels)
    assert np.array_equal(found.images[found.labels.index("tall")][0], images[0])
    made = kotha.train(tmp_path / "images", out=tmp_path / "run", **QUICK)
    assert [each["label"] for each in made.summary["classes"]] == ["flat", "tall"]


def test_an_archive_may_contain_its_own_parts(tmp_path: Path) -> None:
    images, labels = shapes(40)
    names = {"x_train": images[:30], "y_train": labels[:30], "x_test": images[30:], "y_test": labels[30:]}
    np.savez(tmp_path / "a.npz", **names)
    found = read_labelled_images(tmp_path / "a.npz", SIDE, 1)
    assert {part: len(each) for part, each in found.items()} == {"train": 30, "test": 10}
    made = kotha.train(tmp_path / "a.npz", out=tmp_path / "run", **QUICK)
    assert made.summary["examples"] == 10


def test_a_resumed_run_equals_an_uninterrupted_one(archive: Path, tmp_path: Path) -> None:
    stopped_and_resumed(partial(kotha.train, archive, **QUICK), partial(kotha.train, archive), tmp_path)


def test_training_starts_from_another_image_size_and_other_classes(run: kotha.Run, tmp_path: Path) -> None:
    images, labels = shapes(60)
    larger = images.repeat(2, axis=1).repeat(2, axis=2)
    renamed = [{"flat": "lying", "tall": "standing"}[label] for label in labels]
    np.savez(tmp_path / "a.npz", images=larger, labels=np.array(renamed))
    given = {name: QUICK[name] for name in ("batch_size", "evaluate_every", "steps")}
    made = kotha.train(tmp_path / "a.npz", out=tmp_path / "run", start=run, image_size=2 * SIDE, **given)
    config = made.model.config
    assert isinstance(config, ViTConfig)
    assert (config.image_size, config.labels) == (2 * SIDE, ("lying", "standing"))


def test_the_commands(run: kotha.Run, archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", shapes(1)[0][0])
    page = tmp_path / "looks.html"
    assert main(["classify", str(run.path), str(tmp_path / "a.npy"), "--attention", str(page), "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["label"] in ("flat", "tall") and page.is_file()
    assert f"kotha: page saved to {page}\n" in output.err
    assert main(["evaluate", str(run.path), str(archive)]) == 0
    output = capsys.readouterr()
    assert "nearest neighbour" in output.out and "The model was trained on 64 of these" in output.out
    words = ["train", str(archive), "--out", str(tmp_path / "run"), "--preset", "vit-digits", "--steps", "2"]
    assert main([*words, "--set", f"image_size={SIDE}", "d_model=16", "n_heads=2", "n_layers=1"]) == 0
    output = capsys.readouterr()
    assert "classes: flat, tall" in output.err
    assert f"confusion matrix: {tmp_path / 'run' / PAGE} (open it in a browser)" in output.err
    assert "nearest neighbour" in output.out and "validation accuracy" in output.out and "{" not in output.out


def test_the_default_preset_is_small_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images, labels = shapes(40)
    np.savez(tmp_path / "wide.npz", images=np.kron(images, np.ones((1, 2, 2), images.dtype)), labels=labels)
    words = ["train", str(tmp_path / "wide.npz"), "--out", str(tmp_path / "run"), "--steps", "1"]
    assert main([*words, "--set", "batch_size=4"]) == 0
    assert "no preset given: using vit-digits, which takes images of 28 x 28 pixels" in capsys.readouterr().err
    words[words.index("--out") + 1] = str(tmp_path / "other")
    assert main([*words, "--preset", "pocket"]) != 0
    assert "images require a vit model; use --preset vit-digits" in capsys.readouterr().err


def test_bad_images_are_rejected_and_leave_no_files(run: kotha.Run, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.npz").write_bytes(b"PK no archive")
    np.savez(tmp_path / "unnamed.npz", a=np.zeros(3))
    np.savez(tmp_path / "unequal.npz", images=np.zeros((3, SIDE, SIDE), np.uint8), labels=np.zeros(2))
    np.savez(tmp_path / "one.npz", images=shapes(9)[0], labels=np.zeros(9, int))
    for folder, content in (("cat", b"no picture"), ("dog", b"")):
        (tmp_path / "pictures" / folder).mkdir(parents=True)
        (tmp_path / "pictures" / folder / "a.png").write_bytes(content)
    out = tmp_path / "run"
    result = {
        "broken.npz": "does not contain readable arrays",
        "unnamed.npz": "has the arrays a; name them images and labels",
        "unequal.npz": "their labels",
        "one.npz": "all 9 examples have the label '0'",
        "pictures": "cannot be read as an image",
    }
    for name, message in result.items():
        with pytest.raises(KothaError, match=message):
            kotha.train(tmp_path / name, out=out, **QUICK)
    with pytest.raises(KothaError, match=r"the train images of .* are 1 x 14 x 14"):
        kotha.train(archive, out=out, preset="vit-digits", steps=2)
    with pytest.raises(ConfigError, match="pocket is a gpt model, but images require a vit"):
        kotha.train(archive, out=out, preset="pocket", steps=2)
    gpt = bundle.save(tmp_path / "gpt", build(preset("mini")))
    with pytest.raises(ConfigError, match="gpt is a gpt model, but images require a vit"):
        kotha.train(archive, out=out, start=gpt, steps=2)
    (tmp_path / "table.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(KothaError, match=r"table\.tsv contains no images; give an \.npz archive"):
        run.model.evaluate(tmp_path / "table.tsv")
    assert not out.exists()
    with pytest.raises(CheckpointError, match="contains a run; resume it with resume=True"):
        kotha.train(archive, out=run.path, **QUICK)


def _array(header: str, data: bytes = bytes(8)) -> bytes:
    written = header.encode()
    return b"\x93NUMPY\x01\x00" + len(written).to_bytes(2, "little") + written + data


def test_headers_that_crash_pythons_parser_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy reads old headers with Python's tokenizer, which in Python 3.12 raises a SystemError for some of them."""
    np.save(tmp_path / "a.npy", np.zeros((8, 8)))

    def fall(*_: object, **__: object) -> None:
        raise SystemError("returned a result with an exception set")

    monkeypatch.setattr(np, "load", fall)
    with pytest.raises(
        UsageError, match="does not contain an array of pixels: returned a result with an exception set"
    ):
        read_picture(tmp_path / "a.npy", 8, 1)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2147483648,)}\n",  # sixteen gigabytes
        "{'descr': '|u1', 'fortran_order': False, 'shape': (8,\n",  # truncated Python code
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-8, -1)}\n",
        "{" * 3000,
        "",
    ],
)
def test_an_array_with_a_wrong_header_is_rejected(header: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(_array(header))
    with pytest.raises(UsageError, match="does not contain an array of pixels"):
        read_picture(tmp_path / "a.npy", 8, 1)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("images.npy", _array(header))
    with pytest.raises(DataError, match="does not contain readable arrays"):
        read_labelled_images(tmp_path / "a.npz", 8, 1)


def test_images_with_too_many_pixels_or_too_large_values_are_rejected(tmp_path: Path) -> None:
    Image = pytest.importorskip("PIL.Image", reason="pictures are read by Pillow")  # noqa: N806
    Image.new("1", (10_000, 8_000)).save(tmp_path / "a.png")
    with pytest.raises(UsageError, match="10,000 x 8,000 pixels, more than 67,108,864; make it smaller"):
        read_picture(tmp_path / "a.png", 8, 1)
    (tmp_path / "a.pgm").write_text(f"P2 1 1 255\n{10**30}\n")
    with pytest.raises(UsageError, match="cannot be read as an image"):
        read_picture(tmp_path / "a.pgm", 8, 1)


def test_an_image_that_crashes_its_reader_is_rejected(tmp_path: Path) -> None:
    """A TIFF whose table gives the offset of the pixels (tag 273) as text."""
    Image = pytest.importorskip("PIL.Image", reason="pictures are read by Pillow")  # noqa: N806
    Image.new("L", (8, 8)).save(tmp_path / "a.tif")
    data = (tmp_path / "a.tif").read_bytes()
    at = data.index((273).to_bytes(2, "little") + (4).to_bytes(2, "little") + (1).to_bytes(4, "little"))
    (tmp_path / "a.tif").write_bytes(data[: at + 2] + (2).to_bytes(2, "little") + data[at + 4 :])
    with pytest.raises(UsageError, match="cannot be read as an image"):
        read_picture(tmp_path / "a.tif", 8, 1)


def test_labels_of_an_archive_may_be_integers(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=THREE, labels=np.array([1.0, 2.0, 10.0]))
    assert read_labelled_images(tmp_path / "a.npz", 8, 1)["train"].labels == ("1", "2", "10")


THREE = np.arange(3 * 64, dtype=np.uint8).reshape(3, 8, 8)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((0, 8, 8), np.uint8), np.zeros((0, 3)), r"have shape \(0, .*their labels \(0,\)"),
        (np.zeros((2, 8, 0), np.uint8), np.zeros(2, int), r"have shape \(2, 8, 0\)"),
        (THREE, np.frombuffer(b"\xff\xff\xff\x7f" * 3, "<U1"), r"the train labels of .* cannot be read"),
        (THREE, np.array([1.0, np.nan, 2.0]), "not all integers or names"),
        (THREE, np.array(["a", None, "b"], dtype=object), "Object arrays cannot be loaded when allow_pickle=False"),
    ],
)
def test_arrays_that_are_no_labelled_images_are_rejected(
    images: Any, labels: Any, message: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "a.npz", images=images, labels=labels)
    with pytest.raises(DataError, match=message):
        read_labelled_images(tmp_path / "a.npz", 8, 1)


def test_class_folders_match_under_unicode_normalization(tmp_path: Path) -> None:
    for number, name in enumerate(("caf\u00e9", "cafe\u0301", "b")):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.full((8, 8), number, np.uint8))
    assert set(read_labelled_images(tmp_path, 8, 1)["train"].labels) == {"caf\u00e9", "b"}
