"""Proof of the Hugging Face door: ``transformers`` itself opens the folder and is asked what our model is asked.

Both compute in float32 from the numbers in the folder, so a model that was rounded on its way out is compared as
rounded. Everything stays on this machine, and no code of the folder is run.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError
from kotha.export import parity
from kotha.export.layouts import Layout
from kotha.export.parity import ParityReport
from kotha.i18n.message import Message
from kotha.model.bert import BERT
from kotha.model.classifier import TextClassifier
from kotha.model.config import TextConfig
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT
from kotha.storage.status import is_file
from kotha.text.tokenizer.importers import KNOWN_FILES
from kotha.text.tokenizer.tokenizer import Tokenizer

# How many ids, drawn and read, the logits are compared on; fewer where the context ends before.
_N_POSITIONS = 64
_WORDS_ALONE = "BertForMaskedLM"

Pairs = list[tuple[Tensor, Tensor]]


@torch.no_grad()
def check_hf(folder: Path, bundle: Bundle, layout: Layout, lines: Sequence[str] | None = None) -> ParityReport:
    """Compare a folder, as transformers reads it, with a model of ours; says so where transformers is missing."""
    try:
        import transformers
    except ImportError:
        return parity.not_checked("hf", "transformers")
    report = ParityReport("hf", peer=f"transformers {transformers.__version__}")
    lines = parity.built_in_lines() if lines is None else lines
    with _quiet(transformers):
        ours, theirs = parity.our_side(bundle).model, _open(transformers, folder, layout)
        with _their_errors(folder, "transformers cannot run {path}: {why}"):
            report = parity.with_logits(report, _logits(ours, theirs, _ids(bundle, lines)))
        if bundle.tokenizer is not None:
            report = _with_lines(transformers, report, folder, bundle.tokenizer, lines, prompts=isinstance(ours, GPT))
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


def _with_lines(
    transformers: Any, report: ParityReport, folder: Path, tokenizer: Tokenizer, lines: Sequence[str], prompts: bool
) -> ParityReport:
    """Their tokenizer on plain text, where what spells a special token is text as here; or on texts as prompts.

    Of a SentencePiece model alone, SentencePiece itself is asked: transformers guesses what its own files do not say.
    """
    model = next((folder / name for name in KNOWN_FILES if name.endswith(".model") and is_file(folder / name)), None)
    if model is not None and not is_file(folder / "tokenizer.json") and find_spec("sentencepiece"):
        import sentencepiece

        with _their_errors(folder):
            processor = sentencepiece.SentencePieceProcessor(str(model))
        remark = Message("tokens were compared with sentencepiece {version} itself", version=sentencepiece.__version__)
        return parity.with_lines(replace(report, remark=remark), tokenizer.encode, processor.encode, lines)
    with _their_errors(folder):
        theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)

    def encode(line: str) -> Sequence[int]:
        ids: list[int] = theirs(line, add_special_tokens=prompts, split_special_tokens=True)["input_ids"]
        return ids

    ours = parity.prompt_reader(tokenizer) if prompts else tokenizer.encode
    return parity.with_lines(report, ours, encode, lines)


@contextmanager
def _their_errors(folder: Path, template: str = "transformers cannot open {path}: {why}") -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever another library finds in a folder
        said = " ".join(line.strip() for line in str(error).strip().splitlines()[:2])[:300]
        raise KothaError(template, path=folder, why=said or type(error).__name__) from error


# -- what both are asked ----------------------------------------------------------------------------------------------


def _ids(bundle: Bundle, lines: Sequence[str]) -> list[Tensor]:
    """Token ids to compare on, each (1, T): drawn, and of real text where there is a tokenizer."""
    config = bundle.config
    if not isinstance(config, TextConfig):
        return []
    length = min(config.context_length, _N_POSITIONS)
    drawn = torch.randint(config.vocab_size, (1, length), generator=torch.Generator().manual_seed(0))
    if bundle.tokenizer is None:
        return [drawn]
    read = bundle.tokenizer.encode("\n".join(lines[-20:]))[:length]
    return [drawn, torch.tensor([read])] if read else [drawn]


def _logits(ours: Model, theirs: Any, ids: list[Tensor]) -> Pairs:
    if isinstance(ours, ViT):
        shape = (2, ours.config.n_channels, ours.config.image_size, ours.config.image_size)
        images = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        return [(ours(images), theirs(images).logits)]
    found: Pairs = []
    for each in ids:
        seen = torch.ones_like(each)
        match ours:
            case TextClassifier():
                found += _of_classes(ours, theirs, each)
            case GPT():
                found.append((ours(each), theirs(input_ids=each, attention_mask=seen).logits))
            case Seq2Seq():
                other = theirs(input_ids=each, attention_mask=seen, decoder_input_ids=each)
                found.append((ours(each, each), other.logits))
            case BERT():
                segments = (torch.arange(each.shape[1]) % ours.config.n_segments)[None]  # every kind, in turns
                mine = ours(each, segments)
                other = theirs(input_ids=each, attention_mask=seen, token_type_ids=segments)
                found.append((mine.token_logits, other[0]))
                if hasattr(other, "seq_relationship_logits"):
                    found.append((mine.pair_logits, other.seq_relationship_logits))
    return found


def _of_classes(ours: TextClassifier, theirs: Any, ids: Tensor) -> Pairs:
    """Alone and filled up; theirs finds a GPT's last token by what is no padding, so none stands among the others."""
    pad = theirs.config.pad_token_id
    text = ids if pad is None else torch.where(ids == pad, (pad + 1) % ours.config.vocab_size, ids)
    cases = [(text, torch.ones_like(text, dtype=torch.bool))]
    if pad is not None and text.shape[1] > 2:
        last = torch.arange(text.shape[1]) >= text.shape[1] - 2
        cases.append((text.masked_fill(last, pad), ~last[None]))
    return [(ours(*case), theirs(input_ids=case[0], attention_mask=case[1].long()).logits) for case in cases]
