"""The public API: its names and docstrings; the examples in the docstrings are run."""

import contextlib
import doctest
import inspect
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.prepared import write_pairs as write_translations

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.model.config import BERTConfig, Seq2SeqConfig
from kotha.model.family import build
from kotha.model.presets import preset

NAMES = [
    "Index",
    "KothaError",
    "LanguageModel",
    "Run",
    "Tokenizer",
    "compare",
    "finetune_classify",
    "finetune_instruct",
    "judge",
    "load",
    "prepare",
    "presets",
    "quiet",
    "train",
    "train_tokenizer",
    "write_questions",
    "write_stories",
]


def public() -> Iterator[tuple[str, Any]]:
    """Yield every public name, and the public members of public classes."""
    for name in NAMES:
        found = getattr(kotha, name)
        yield name, found
        if inspect.isclass(found) and found.__module__.startswith("kotha.api"):
            for origin in (each for each in found.__mro__ if each.__module__.startswith("kotha.api")):
                parts = ((part, value) for part, value in vars(origin).items() if not part.startswith("_"))
                yield from ((f"{name}.{part}", value) for part, value in parts)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A folder with the files that the examples use, and their shared variables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("world"))
        kotha.write_stories("stories.jsonl", documents=60)
        tokenizer = kotha.train_tokenizer("stories.jsonl", vocab_size=600, out="tokenizer")
        kotha.prepare(["stories.jsonl"], tokenizer, "data")
        run = kotha.train("data", preset="pocket", steps=8, out="run", batch_size=2, context_length=32)
        wordpiece = kotha.train_tokenizer("stories.jsonl", kind="wordpiece", vocab_size=600)
        bert = BERTConfig(vocab_size=600, context_length=32, n_layers=1, d_model=16, n_heads=2)
        bundle.save(Path("bert"), build(bert), wordpiece)
        seq2seq = Seq2SeqConfig(
            vocab_size=600, context_length=16, n_layers=1, n_decoder_layers=1, d_model=16, n_heads=2
        )
        bundle.save(Path("seq2seq"), build(seq2seq), tokenizer)
        torch.manual_seed(5)
        bundle.save(Path("other"), build(run.model.config), tokenizer)
        sizes = {"image_size": 14, "n_layers": 1, "d_model": 16, "n_heads": 2}
        eyes = preset("vit-digits").replace(**sizes, n_classes=2, labels=("flat", "tall"))
        bundle.save(Path("vit"), build(eyes))
        write_shapes(Path("shapes.npz"))
        write_moods(Path("moods.csv"))
        write_translations(Path("pairs.tsv"), 12)
        kotha.finetune_classify("moods.csv", start="run", out="moods", steps=2)
        write_pairs(Path("pairs.jsonl"))
        yield {"kotha": kotha, "run": run, "lm": run.model}


def write_shapes(file: Path) -> None:
    """A dozen images of flat or tall bars."""
    images = np.zeros((12, 14, 14), np.uint8)
    for place, image in enumerate(images):
        (image if place % 2 else image.T)[place] = 200
    np.savez(file, images=images, labels=np.array(["tall", "flat"] * 6))


def write_moods(file: Path) -> None:
    """Two dozen texts labelled good or bad."""
    result = {"ভালো": "চমৎকার", "মন্দ": "বিশ্রী"}
    days = ("আজ", "কাল", "পরশু", "সকাল", "বিকাল", "রাত", "দুপুর", "ভোর", "সন্ধ্যা", "মাস", "বছর", "দিন")
    rows = [f"{day} {word},{mood}" for mood, word in result.items() for day in days]
    file.write_text("\n".join(["said,mood", *rows]) + "\n", encoding="utf-8")


def write_pairs(file: Path) -> None:
    """A dozen short questions with their answers."""
    names = ("মা", "বাবা", "দাদা")
    rows = [{"question": f"{day} কে এল?", "answer": f"{names[day % 3]}।"} for day in range(12)]
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def test_public_names() -> None:
    assert sorted(kotha.__all__) == NAMES
    assert sorted(dir(kotha)) == sorted([*NAMES, "__version__"])
    with pytest.raises(AttributeError, match="kotha has no 'lode'; it has Index, KothaError"):
        kotha.lode  # noqa: B018


@pytest.mark.filterwarnings("default:this model was not trained for conversation")
@pytest.mark.parametrize("name", [name for name, _ in public()])
def test_every_public_name_has_an_example_that_runs(world: dict[str, Any], name: str) -> None:
    value = dict(public())[name]
    text = inspect.getdoc(value.func if hasattr(value, "func") else value)
    assert text, f"{name} has no docstring"
    found = doctest.DocTestParser().get_doctest(text, dict(world), name, None, None)
    assert found.examples, f"{name} has no example"
    assert not any(doctest.SKIP in example.options for example in found.examples), f"{name} skips an example"
    messages: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found, out=messages.append)
    assert not result.failed, "".join(messages)
    assert result.attempted == len(found.examples)


@pytest.mark.parametrize("first", ["kotha.training.loop", "kotha.errors"])
def test_train_is_a_function_regardless_of_import_order(first: str) -> None:
    code = (
        f"import kotha, inspect, {first}; from kotha.training.config import TrainConfig; "
        "import kotha.training.config as recipes; assert recipes.recipe; "
        "assert 'minutes' in inspect.signature(kotha.train).parameters; "
        "assert kotha.training.config.TrainConfig is TrainConfig"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_train_works_after_importing_the_training_package(world: dict[str, Any]) -> None:
    import kotha.training.loop

    again = kotha.train("data", preset="mini", steps=1, out="again", batch_size=2)
    assert again.summary["steps"] == 1
    assert Path("again/report.html").is_file()


def test_results_have_a_readable_repr(world: dict[str, Any]) -> None:
    lm = world["lm"]
    assert repr(lm.tokenizer) == "Tokenizer(unigram, 600 pieces)"
    assert len(lm.tokenizer) == 600
    with lm.trace("নদী", hook_points=["logits", "tokens"]) as few:
        assert repr(few) == "Trace(2 hook points recorded)"
    assert repr(lm.lens("নদী")) == "View(Lens of 'নদী')"
    assert "is empty" in repr(lm.flow(""))
    assert repr(lm.worksheet("নদী")).startswith("View(Sheet of ")
    with pytest.raises(kotha.KothaError, match=r"nowhere not found; specify the folder of"):
        kotha.Run("nowhere")


def test_chat_with_an_untrained_model_warns(world: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="not trained for conversation") as warned:
        world["lm"].chat(plain=True)
    assert warned[0].filename == __file__, "the warning points to the calling line"


@pytest.mark.parametrize(
    ("path", "wording"),
    [
        ("nowhere", "nowhere not found; give a run, model or Hugging Face folder, or box"),
        ("data", "data is a data folder; train a model on it with `kotha train`, and specify the run folder"),
        ("tokenizer", "tokenizer is not a model folder"),
        (".", r"\. is not a model folder: it has no config.json"),
        ("stories.jsonl", "stories.jsonl is a file; give a run, model or Hugging Face folder"),
    ],
)
def test_loading_something_that_is_not_a_model(world: dict[str, Any], path: str, wording: str) -> None:
    with pytest.raises(kotha.KothaError, match=wording):
        kotha.load(path)


def talk(lm: Any) -> Any:
    with pytest.warns(UserWarning, match="not trained for conversation"):
        return lm.chat()


WRONG_ARGUMENTS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda lm: lm.generate(5), r"prompt=5 has the wrong type; expected .*str.*list\[str\]"),
    (lambda lm: lm.generate(None), "prompt=None has the wrong type; expected "),
    (lambda lm: lm.generate([1, 2]), r"prompt=\[1, 2\] has the wrong type"),
    (lambda lm: lm.generate("ক", temperature="hot"), "temperature='hot' has the wrong type; expected float"),
    (lambda lm: lm.generate("ক", tokens=True), "tokens=True has the wrong type; expected int"),
    (lambda lm: lm.generate("ক", token=3), "generate has no argument 'token'; did you mean 'tokens'?"),
    (lambda lm: lm.generate("ক", stop="।"), "stop='।' has the wrong type; expected Sequence"),
    (lambda lm: lm.stream(["ক"]), r"prompt=\['ক'\] has the wrong type; expected str"),
    (lambda lm: lm.trace(3), "text=3 has the wrong type; expected str"),
    (lambda lm: lm.attention(3), "text=3 has the wrong type; expected str"),
    (lambda lm: lm.attention(["ক"]), r"text=\['ক'\] has the wrong type; expected str"),
    (lambda lm: lm.flow("ক", generate="12"), "generate='12' has the wrong type; expected int \\| None"),
    (lambda lm: lm.lens("ক", foo=3), "^lens has no argument 'foo'; known: generate"),
    (lambda lm: lm.heads(["ক"]), r"text=\['ক'\] has the wrong type; expected str \| Path \| None"),
    (lambda lm: lm.worksheet("ক", layer="0"), "layer='0' has the wrong type; expected int"),
    (lambda lm: lm.evaluate(5), "text=5 has the wrong type; expected str \\| PathLike"),
    (
        lambda lm: lm.evaluate("এক যে ছিল রাজা"),
        r"file 'এক যে.*' not found; to evaluate a string, pass it in a list: \[text\]",
    ),
    (lambda lm: lm.evaluate("এক যে ছিল রাজা। " * 50), "to evaluate a string, pass it in a list"),
    (lambda lm: talk(lm).say(5), "text=5 has the wrong type; expected str"),
    (lambda lm: talk(lm).say("ক", tokens="5"), "tokens='5' has the wrong type; expected int"),
    (lambda lm: talk(lm).say("ক", temprature=1), "say has no argument 'temprature'; did you mean 'temperature'"),
    (lambda lm: lm.tokenizer.encode(5), "text=5 has the wrong type; expected str"),
    (lambda lm: lm.tokenizer.encode_batch("ক"), "texts='ক' has the wrong type; expected "),
    (lambda lm: lm.tokenizer.decode(5), "tokens=5 cannot be decoded; pass a list of token ids"),
    (lambda lm: lm.tokenizer.decode("ক"), "tokens='ক' cannot be decoded; pass a list of token ids"),
    (lambda lm: lm.attention("ক").save(5), "path=5 has the wrong type; expected str \\| PathLike"),
    (lambda lm: lm.export("hf", 5), "out=5 has the wrong type; expected str \\| PathLike"),
    (lambda lm: kotha.load(5), "path=5 has the wrong type; expected str \\| PathLike"),
    (lambda lm: kotha.Run(None), "path=None has the wrong type; expected str \\| PathLike"),
    (lambda lm: kotha.compare(5), "runs=5 has the wrong type; expected Iterable"),
    (lambda lm: kotha.train("data", minutes="1", out="x"), "minutes='1' has the wrong type; expected float \\| None"),
    (lambda lm: kotha.train("data", minute=1, out="x"), "unknown setting 'minute'; did you mean 'minutes'?"),
    (lambda lm: kotha.train("data", n_layer=1, out="x"), "unknown setting 'n_layer'; did you mean 'n_layers'?"),
    (lambda lm: kotha.finetune_classify("a.csv", out="x", epoch=1), "unknown setting 'epoch'; did you mean 'epochs'?"),
    (lambda lm: kotha.load(paths="run"), "load has no argument 'paths'; did you mean 'path'?"),
    (lambda lm: kotha.train("data"), r"train: missing a required (keyword-only )?argument: 'out'"),
    (lambda lm: kotha.train_tokenizer("stories.jsonl", vocab_size="8k"), "vocab_size='8k' has the wrong type"),
    (lambda lm: kotha.train_tokenizer("stories.jsonl", texts=[]), "train_tokenizer has no argument 'texts'"),
    (lambda lm: kotha.prepare("stories.jsonl", "tokenizer", "x", sede=1), "no argument 'sede'; did you mean 'seed'?"),
    (lambda lm: kotha.write_stories("x.txt", "many"), "documents='many' has the wrong type; expected int"),
]


@pytest.mark.parametrize(("call", "wording"), WRONG_ARGUMENTS, ids=[wording for _, wording in WRONG_ARGUMENTS])
def test_wrong_argument_types_raise_at_the_call(
    world: dict[str, Any], call: Callable[[Any], Any], wording: str
) -> None:
    with pytest.raises(kotha.KothaError, match=wording):
        call(world["lm"])


@pytest.mark.parametrize("file", ["stories.jsonl", "missing.txt"])
@pytest.mark.parametrize(
    "name",
    [
        *("trace", "attention", "flow", "lens", "heads", "worksheet", "embed"),
        *("seq2seq.alignment", "seq2seq.translate", "bert.fill", "moods.classify"),
    ],
)
def test_a_file_name_is_not_accepted_as_a_text(world: dict[str, Any], name: str, file: str) -> None:
    model, _, method = name.rpartition(".")
    lm = kotha.load(model) if model else world["lm"]
    with (
        pytest.raises(kotha.KothaError, match=rf"'{file}' is the name of a file.* pass the contents"),
        contextlib.ExitStack() as entered,
    ):
        looked = getattr(lm, method)(file)
        entered.enter_context(looked)  # a trace reads its text when its block is entered


def test_a_sentence_may_name_a_file(world: dict[str, Any]) -> None:
    assert world["lm"].lens("read stories.jsonl").title == "read stories.jsonl"


def test_a_pipe_as_config_is_rejected_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(kotha.KothaError, match="it has no config"):
        kotha.load(tmp_path)
    with pytest.raises(kotha.KothaError, match="it is not a regular file"):
        kotha.Run(tmp_path)


def test_an_unavailable_device_raises(world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    for name in ("cuda", "cuda:1", "mps"):
        with pytest.raises(kotha.KothaError, match=f"device='{name}' is not available; use auto, or cpu"):
            kotha.load("run", name)


def test_a_layer_is_named_by_its_number_too(world: dict[str, Any]) -> None:
    assert len(world["lm"].attention("নদী", layers=[0]).found.maps) == 1
    with world["lm"].trace("নদী", layers=[0]) as seen:
        assert "blocks.0.attention.weights" in seen
        assert "blocks.1.attention.weights" not in seen


def test_a_lone_surrogate_is_rejected(world: dict[str, Any]) -> None:
    for read in (lambda text: world["lm"].evaluate([text]), world["lm"].heads, world["lm"].generate):
        with pytest.raises(kotha.KothaError, match="not valid Unicode"):
            read("\ud800")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "a\udc80b"])
def test_impossible_file_names_are_rejected_before_any_work(world: dict[str, Any], name: str) -> None:
    for work in (
        lambda: kotha.write_stories(f"{name}.txt", 1),
        lambda: kotha.train_tokenizer("nothing-is-read", out=name),
        lambda: kotha.prepare("stories.jsonl", "tokenizer", name),
        lambda: kotha.train("data", out=name, steps=1),
        lambda: world["lm"].export("hf", name),
        lambda: world["lm"].flow("নদী").save(f"{name}.html"),
    ):
        with pytest.raises(kotha.KothaError, match="is not a valid file name"):
            work()


@pytest.mark.parametrize("wrong", ["exactly", None])
def test_duplicates_option(world: dict[str, Any], wrong: str | None) -> None:
    with pytest.raises(kotha.KothaError, match=r"duplicates=.* (is not a valid choice|has the wrong type)"):
        kotha.prepare("stories.jsonl", "tokenizer", "none", duplicates=wrong)


def test_a_hugging_face_folder_loads(world: dict[str, Any]) -> None:
    lm = world["lm"]
    assert lm.export("hf", "hf").passed
    assert kotha.load("hf").generate("নদীর ধারে", tokens=8) == lm.generate("নদীর ধারে", tokens=8)


def test_generate_equals_the_command(world: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "run", "নদীর ধারে", "--tokens", "9", "--seed", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == world["lm"].generate("নদীর ধারে", tokens=9, seed=3)


def test_two_streams_at_once_do_not_mix(world: dict[str, Any]) -> None:
    lm, prompts = world["lm"], ["নদীর ধারে", "মা"]
    streams = [lm.stream(prompt, tokens=6) for prompt in prompts]
    parts: list[list[str]] = [[], []]
    for letters in itertools.zip_longest(*streams, fillvalue=""):
        for part, each in zip(parts, letters, strict=True):
            part.append(each)
    assert [prompt + "".join(part) for prompt, part in zip(prompts, parts, strict=True)] == [
        lm.generate(prompt, tokens=6) for prompt in prompts
    ]


@pytest.mark.parametrize("name", ["attention", "flow", "lens", "heads", "worksheet"])
def test_views_render_in_a_sandboxed_frame(world: dict[str, Any], name: str) -> None:
    view = getattr(world["lm"], name)("নদীর ধারে একটি গ্রাম")
    shown = view._repr_html_()
    assert shown.startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in shown
    assert shown.count("<") == 2, "the page itself is inside srcdoc, escaped"
    assert json.dumps(view.to_dict(), ensure_ascii=False)


def test_every_result_has_a_short_repr_of_one_line(world: dict[str, Any]) -> None:
    lm, text = world["lm"], "নদীর ধারে একটি গ্রাম।"
    index = kotha.Index("reprs.index")
    assert repr(index) == "Index('reprs.index': new)"
    judging = kotha.judge(["run", "other"], ["নদীর ধারে", "মা"], out="judging-reprs", tokens=5)
    judging.record("মিনা", judging.left_for("মিনা")[0].id, "left")
    found = [
        *(index, index.update("stories.jsonl"), index.measures, index.search(text), index.ask(text), world["run"], lm),
        *(kotha.prepare("stories.jsonl", "tokenizer", "for-reprs"), kotha.presets()[0], lm.tokenizer, lm.engine()),
        *(lm.evaluate("stories.jsonl"), lm.evaluate("pairs.jsonl"), lm.evaluate("stories.jsonl", perturb=["latin"])),
        *(
            lm.attention(text),
            lm.flow(text),
            lm.lens(text),
            lm.worksheet(text),
            lm.embedder(),
            lm.export("hf", "hf-reprs"),
        ),
        *(kotha.compare(["run", "run/best"], text="stories.jsonl"), kotha.load("moods").classify(text, why=True)),
        *(kotha.load("moods").evaluate("moods.csv"), kotha.load("seq2seq").evaluate("pairs.tsv", pair=("bn", "en"))),
        *(kotha.load("bert").evaluate("stories.jsonl"), kotha.load("bert").fill("নদীর ধারে [MASK] থাকে।")),
        *(judging, judging.result()),
    ]
    long = {repr(each)[:80]: len(repr(each)) for each in found if len(repr(each)) > 240 or "\n" in repr(each)}
    assert not long
    report, answer, score = repr(found[7]), repr(found[4]), repr(found[11])
    assert report.startswith("PrepareReport(train_documents=") and "hits=<5 items>" in answer
    assert "bits_per_byte=" in score and "documents=60" in score


def test_a_repr_never_fails(world: dict[str, Any]) -> None:
    Path("damaged.index").write_text("no index", encoding="utf-8")
    assert "is not an index" in repr(kotha.Index("damaged.index")) or "damaged" in repr(kotha.Index("damaged.index"))
    shutil.copytree("run", "damaged-run")
    Path("damaged-run/best.json").write_text("{", encoding="utf-8")
    assert repr(kotha.Run("damaged-run")).startswith("Run('damaged-run': ")
