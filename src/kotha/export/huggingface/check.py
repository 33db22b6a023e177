"""Check that a Hugging Face folder, when loaded by ``transformers``, matches the original model.

Both models compute in float32 with the weights in the folder, so an export with rounded weights is compared with a
model with rounded weights. Nothing is downloaded, and no code from the folder is run.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError
from kotha.export.parity import ParityReport, built_in_lines, logit_rows, our_side, prompt_reader, questions
from kotha.export.weight_names import Layout
from kotha.i18n.message import Message
from kotha.model.classifier import TextClassifier
from kotha.model.config import TextConfig
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.storage.status import is_file
from kotha.text.tokenizer.importers import KNOWN_FILES
from kotha.text.tokenizer.tokenizer import Tokenizer

# The names of inputs in transformers; a Seq2Seq's source is called input_ids there.
_NAMES = {"ids": "input_ids", "segments": "token_type_ids", "real": "attention_mask", "images": "pixel_values"}
_TRANSLATORS = {**_NAMES, "source": "input_ids", "ids": "decoder_input_ids"}
_N_POSITIONS = 64
_MASKED_LM = "BertForMaskedLM"


@torch.no_grad()
def check_hf(folder: Path, bundle: Bundle, layout: Layout, lines: Sequence[str] | None = None) -> ParityReport:
    """Load a folder with transformers and compare it with a model; without transformers, nothing is compared."""
    report = ParityReport.of("hf", "transformers")
    if report.peer is None:
        return report
    import transformers

    lines = built_in_lines() if lines is None else lines
    with _quiet(transformers):
        ours, theirs = our_side(bundle).model, _open(transformers, folder, layout)
        with _their_errors(folder, "transformers cannot run {path}: {why}"):
            report.compare_logits(_logits(ours, theirs, bundle.tokenizer, lines))
        if bundle.tokenizer is not None:
            _compare_lines(transformers, report, folder, bundle.tokenizer, lines, prompts=isinstance(ours, GPT))
    return report


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Hide the progress bars and warnings of transformers."""
    log = transformers.utils.logging
    level, shown = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if shown:
            log.enable_progress_bar()


def _open(transformers: Any, folder: Path, layout: Layout) -> Any:
    with _their_errors(folder):
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        name = _MASKED_LM if _MASKED_LM in (config.architectures or ()) else layout.architecture
        theirs = getattr(transformers, name).from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
    theirs.config.return_dict = True  # the config in a folder may set it to False
    return theirs


def _compare_lines(
    transformers: Any, report: ParityReport, folder: Path, tokenizer: Tokenizer, lines: Sequence[str], prompts: bool
) -> None:
    """Compare the token ids of lines, as plain text or as prompts; names of special tokens are encoded as text.

    A SentencePiece model without other tokenizer files is compared with SentencePiece itself, because transformers
    would guess the missing settings.
    """
    model = next((folder / name for name in KNOWN_FILES if name.endswith(".model") and is_file(folder / name)), None)
    if model is not None and not is_file(folder / "tokenizer.json") and find_spec("sentencepiece"):
        import sentencepiece

        with _their_errors(folder):
            processor = sentencepiece.SentencePieceProcessor(str(model))
        itself = version("sentencepiece")
        report.remarks.append(Message("tokens were checked against sentencepiece {version}", version=itself))
        report.compare_lines(tokenizer.encode, processor.encode, lines)
        return
    with _their_errors(folder):
        theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)

    spelled = [line for line in lines if tokenizer.spells_special(line)]
    if spelled:
        template = (
            "{n:,} lines were not compared: they spell a special token, which transformers encodes as that token, and "
            "Kotha as text"
        )
        report.remarks.append(Message(template, n=len(spelled)))

    def encode(line: str) -> Sequence[int]:
        ids: list[int] = theirs(line, add_special_tokens=prompts, split_special_tokens=True)["input_ids"]
        return ids

    lines = [line for line in lines if line not in spelled]
    report.compare_lines(prompt_reader(tokenizer) if prompts else tokenizer.encode, encode, lines)


@contextmanager
def _their_errors(folder: Path, template: str = "transformers cannot open {path}: {why}") -> Iterator[None]:
    try:
        yield
    except Exception as error:  # transformers may raise anything
        message = " ".join(line.strip() for line in str(error).strip().splitlines()[:2])[:300]
        raise KothaError(template, path=folder, why=message or type(error).__name__) from error


def _logits(ours: Model, theirs: Any, tokenizer: Tokenizer | None, lines: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
    """Yield pairs of logits from Kotha and transformers, for random ids and for real text, with the same padding."""
    rows, config = torch.empty(0), ours.config
    if isinstance(config, TextConfig):
        rows = torch.cat([logit_rows(config, known, lines, 1, _N_POSITIONS) for known in (None, tokenizer)])
    inputs = questions(ours, rows)
    if isinstance(ours, TextClassifier):
        pad = theirs.config.pad_token_id
        if pad is None:  # without a pad token, transformers supports only single texts
            inputs = {name: each[:1] for name, each in inputs.items()}
        else:  # for a GPT, transformers uses the last token that is not padding
            text = torch.where(rows == pad, (pad + 1) % ours.config.vocab_size, rows)
            inputs["ids"] = text.masked_fill(~inputs["real"], pad)
    names = _TRANSLATORS if "source" in inputs else _NAMES
    output = theirs(**{names[name]: each.long() if name == "real" else each for name, each in inputs.items()})
    mine = ours(*inputs.values())
    if isinstance(mine, Tensor):
        return [(mine, output.logits)]
    pairs = [(mine.token_logits, output[0])]
    return [*pairs, (mine.pair_logits, output[1])] if hasattr(output, "seq_relationship_logits") else pairs
