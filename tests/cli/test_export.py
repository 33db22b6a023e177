"""``kotha export`` as a user types it; the contents of the folder are tested in tests/export."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.export.models import CONFIGS, shaken

from kotha.artifacts.model_folder import save
from kotha.cli.main import main


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with a model and a summary."""
    folder = tmp_path_factory.mktemp("run") / "run"
    bundle = shaken(CONFIGS["qwen3"])
    save(folder / "best", bundle.model, bundle.tokenizer)
    (folder / "checkpoints").mkdir()
    about = {"data": {"path": "/home/me/stories", "train_tokens": 1234}, "task": "next-token", "language": "bn"}
    (folder / "config.json").write_text(json.dumps({**about, "training": {"optimizer": "muon"}}))
    result = {"steps": 9, "tokens": 99, "best_step": 7, "bits_per_byte": 0.5, "loss_nats": 10**400}  # too large
    (folder / "summary.json").write_text(json.dumps(result))
    return folder


def test_export_of_a_run_with_parity(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "lines.txt"
    text.write_text("নদীর ধারে একটি গ্রাম।\nসেখানে থাকত এক কৃষক।\n", encoding="utf-8")
    words = ["export", str(run), "--to", "hf", "--out", str(tmp_path / "hf"), "--text", str(text), "--json"]
    assert main([*words, "--license", "mit"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["architecture"] == "Qwen3ForCausalLM"
    parity = found["parity"]
    assert parity["max_logit_difference"] <= 1e-4
    assert parity["tokens_equal"] is True
    assert parity["lines"] == 20
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    for said in (
        'license: "mit"',
        "language: bn",
        "# A Qwen3 trained with Kotha",
        "`stories`",
        "1,234",
        "muon",
        "| bits per byte | 0.5000 |",
        "step 7",
    ):
        assert said in card
    assert "/home/me" not in card and "nats" not in card


def test_a_table_for_people_and_a_remark_on_rounding(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["export", str(run / "best"), "--to", "hf", "--out", str(tmp_path / "hf"), "--type", "float16"]) == 0
    output = capsys.readouterr().out
    assert "not checked: transformers is not installed" in output
    assert "rounded to float16" in output
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    assert 'license: "unknown"' in card
    assert "# A Qwen3 exported with Kotha" in card
    assert "language" not in card
    assert "## Data\n\nunknown" in card
    assert "## Scores\n\nunknown" in card


def test_a_model_card_survives_export_and_import(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gguf = pytest.importorskip("gguf", reason="it reads what a file says of itself")
    model = shutil.copytree(run / "best", tmp_path / "model")
    own = "---\nlanguage: bn\nlicense: cc-by-sa-4.0\n---\n# Its name\n\nIt has read little.\n"
    (model / "README.md").write_text(own, encoding="utf-8")
    assert main(["export", str(model), "--to", "hf", "--out", str(tmp_path / "hf")]) == 0
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nlanguage: bn\nlicense: "cc-by-sa-4.0"\n')
    assert "## Its name\n\nIt has read little." in card and "unknown" not in card
    assert main(["import", str(tmp_path / "hf"), "--out", str(tmp_path / "back")]) == 0
    assert (tmp_path / "back" / "README.md").read_text(encoding="utf-8") == card
    assert main(["card", str(tmp_path / "back")]) == 0
    assert main(["export", str(tmp_path / "back"), "--to", "gguf", "--out", str(tmp_path / "m.gguf")]) == 0
    fields = gguf.GGUFReader(tmp_path / "m.gguf").fields
    assert fields["general.license"].contents() == "cc-by-sa-4.0" and fields["general.languages"].contents() == ["bn"]
    assert main(["import", str(tmp_path / "hf"), "--out", str(tmp_path / "back"), "--overwrite"]) == 0


def test_only_earlier_exports_are_overwritten_and_only_on_request(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    words = ["export", str(run), "--to", "hf", "--out", str(tmp_path / "hf")]
    assert main(words) == 0
    assert main(words) == 1
    assert (
        "exists; choose another folder, or use --overwrite to replace earlier output of the same kind"
        in capsys.readouterr().err
    )
    assert main([*words, "--overwrite"]) == 0
    (tmp_path / "hf" / "letter.txt").write_text("dear")
    assert main([*words, "--overwrite"]) == 1
    assert "hf contains letter.txt, which is not part of the earlier output" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert main([*words[:-1], str(tmp_path / "mine"), "--overwrite"]) == 1
    assert (tmp_path / "mine" / "letter.txt").exists()


def test_a_failed_verification_fails_the_command(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kotha.export.huggingface import export as huggingface_out

    true = huggingface_out.foreign_weights

    def moved(*given: object) -> dict[str, torch.Tensor]:
        weights = true(*given)  # type: ignore[arg-type]
        weights["model.norm.weight"] = weights["model.norm.weight"] * 2
        return weights

    monkeypatch.setattr(huggingface_out, "foreign_weights", moved)
    assert main(["export", str(run), "--to", "hf", "--out", str(tmp_path / "hf"), "--json"]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["parity"]["passed"] is False
    assert "was written, but verification failed: logits differ by" in output.err


def test_a_folder_that_transformers_cannot_load_is_reported(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kotha.export.huggingface import export as huggingface_out

    monkeypatch.setattr(huggingface_out, "_generation", lambda *_: {"num_return_sequences": 3})
    assert main(["export", str(run), "--to", "hf", "--out", str(tmp_path / "hf"), "--json"]) == 1
    assert f"transformers cannot open {tmp_path}/hf: " in capsys.readouterr().err
    assert (tmp_path / "hf" / "config.json").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--to", "hf", "--type", "f16"], 2, "is not supported by this format"),
        (["--to", "gguf", "--type", "q9"], 2, "is not supported by this format"),
        (["--to", "hf", "--text", "/nowhere.txt"], 1, "/nowhere.txt"),
    ],
)
def test_usage_errors_write_nothing(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    assert main(["export", str(run), "--out", str(tmp_path / "out"), *words]) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_unsupported_config_names_the_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = shaken(CONFIGS["gpt2"].replace(norm_order="post", final_norm=False))
    save(tmp_path / "model", bundle.model, bundle.tokenizer)
    assert main(["export", str(tmp_path / "model"), "--to", "hf", "--out", str(tmp_path / "hf")]) == 1
    assert "norm_order=post: GPT-2 requires pre" in capsys.readouterr().err
    assert not (tmp_path / "hf").exists()


@pytest.mark.extended
def test_torch_leaves_no_temporary_files(tmp_path: Path) -> None:
    """On ARM, torch's kernels write a profiler map to /tmp."""
    bundle = shaken(CONFIGS["qwen3"])
    save(tmp_path / "model", bundle.model, bundle.tokenizer)
    words = ["export", str(tmp_path / "model"), "--to", "hf", "--out", str(tmp_path / "hf")]
    with subprocess.Popen([sys.executable, "-m", "kotha", *words], stdout=subprocess.DEVNULL) as process:
        assert process.wait() == 0
    assert not Path(f"/tmp/perf-{process.pid}.map").exists()


@pytest.mark.parametrize("target", ["gguf", pytest.param("onnx", marks=pytest.mark.slow)])
def test_bfloat16_weights_are_widened_for_targets_that_compute_locally(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gguf" if target == "gguf" else "onnxscript", reason="this format needs its library")
    bundle = shaken(CONFIGS["qwen3"])
    save(tmp_path / "narrow", bundle.model.to(torch.bfloat16), bundle.tokenizer)
    code = main(["export", str(tmp_path / "narrow"), "--to", target, "--out", str(tmp_path / "out"), "--json"])
    output = capsys.readouterr()
    assert code == 0, output.err
    assert json.loads(output.out)["parity"]["best_equal"] >= 0.99
