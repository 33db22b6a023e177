"""Proof of the Hugging Face door: ``transformers`` itself opens the folder and is asked what our model is asked.

Both compute in float32 from the numbers in the folder, so a model that was rounded on its way out is compared as
rounded. Everything stays on this machine, and no code of the folder is run.
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

# Our names of what a model is asked, as transformers calls them; what a translator reads has the name of ids.
_NAMES = {"ids": "input_ids", "segments": "token_type_ids", "real": "attention_mask", "images": "pixel_values"}
_TRANSLATORS = {**_NAMES, "source": "input_ids", "ids": "decoder_input_ids"}
_N_POSITIONS = 64
_WORDS_ALONE = "BertForMaskedLM"


@torch.no_grad()
def check_hf(folder: Path, bundle: Bundle, layout: Layout, lines: Sequence[str] | None = None) -> ParityReport:
    """Compare a folder, as transformers reads it, with a model of ours; says so where transformers is missing."""
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
    """Without the other library's bars and remarks, which are not about the user's command."""
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
        name = _WORDS_ALONE if _WORDS_ALONE in (config.architectures or ()) else layout.architecture
        theirs = getattr(transformers, name).from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
    theirs.config.return_dict = True  # what a folder wishes for its answers is not the model's
    return theirs


def _compare_lines(
    transformers: Any, report: ParityReport, folder: Path, tokenizer: Tokenizer, lines: Sequence[str], prompts: bool
) -> None:
    """Their tokenizer on plain text, where what spells a special token is text as here; or on texts as prompts.

    Of a SentencePiece model alone, SentencePiece itself is asked: transformers guesses what its own files do not say.
    """
    model = next((folder / name for name in KNOWN_FILES if name.endswith(".model") and is_file(folder / name)), None)
    if model is not None and not is_file(folder / "tokenizer.json") and find_spec("sentencepiece"):
        import sentencepiece

        with _their_errors(folder):
            processor = sentencepiece.SentencePieceProcessor(str(model))
        itself = version("sentencepiece")
        report.remarks.append(Message("tokens were compared with sentencepiece {version}", version=itself))
        report.compare_lines(tokenizer.encode, processor.encode, lines)
        return
    with _their_errors(folder):
        theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)

    def encode(line: str) -> Sequence[int]:
        ids: list[int] = theirs(line, add_special_tokens=prompts, split_special_tokens=True)["input_ids"]
        return ids

    report.compare_lines(prompt_reader(tokenizer) if prompts else tokenizer.encode, encode, lines)


@contextmanager
def _their_errors(folder: Path, template: str = "transformers cannot open {path}: {why}") -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever another library finds in a folder
        said = " ".join(line.strip() for line in str(error).strip().splitlines()[:2])[:300]
        raise KothaError(template, path=folder, why=said or type(error).__name__) from error


def _logits(ours: Model, theirs: Any, tokenizer: Tokenizer | None, lines: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
    """Ours and theirs, on any ids and on real text; padding is where ours has it, and nowhere else."""
    rows, config = torch.empty(0), ours.config
    if isinstance(config, TextConfig):
        rows = torch.cat([logit_rows(config, known, lines, 1, _N_POSITIONS) for known in (None, tokenizer)])
    asked = questions(ours, rows)
    if isinstance(ours, TextClassifier):
        pad = theirs.config.pad_token_id
        if pad is None:  # theirs then reads one text at a time
            asked = {name: each[:1] for name, each in asked.items()}
        else:  # theirs finds a GPT's last token by what is no padding
            text = torch.where(rows == pad, (pad + 1) % ours.config.vocab_size, rows)
            asked["ids"] = text.masked_fill(~asked["real"], pad)
    names = _TRANSLATORS if "source" in asked else _NAMES
    found = theirs(**{names[name]: each.long() if name == "real" else each for name, each in asked.items()})
    mine = ours(*asked.values())
    if isinstance(mine, Tensor):
        return [(mine, found.logits)]
    pairs = [(mine.token_logits, found[0])]
    return [*pairs, (mine.pair_logits, found[1])] if hasattr(found, "seq_relationship_logits") else pairs
