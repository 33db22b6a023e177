"""Import a Hugging Face folder: convert its weights and tokenizer to a Kotha model.

GPT-2, Qwen3, Llama, BERT, Marian and ViT are supported. The folder is checked before the model is built: the names,
shapes and types of all weights must match the config. A tied weight may be stored once or twice, with equal values.
Biases that an export added (all zero) are removed, so an exported model is imported again bit for bit.

The folder is untrusted input. Shard names must not refer to files outside it, and the index and the shards must list
the same weights. Names, shapes and types are checked before memory is allocated. Pickle files are never opened.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import torch
from torch import Tensor

from kotha.artifacts.model_folder import DTYPES, Bundle, assemble, check_place, first_names, save, shape_alone
from kotha.errors import KothaError, UsageError, reason
from kotha.export.huggingface.check import check_hf
from kotha.export.huggingface.config import CONFIG_FILE, read_config, recorded
from kotha.export.parity import ParityReport
from kotha.export.weight_names import Layout, ReferenceWeight, shapes_of
from kotha.i18n.message import Message, Text
from kotha.model.config import GPTConfig, ModelConfig, TextConfig
from kotha.storage.bundled import CARD_FILE
from kotha.storage.json_files import read_table
from kotha.storage.status import exists, is_file
from kotha.storage.weights import read_header, reading_weights
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.importers import KNOWN_FILES, import_tokenizer
from kotha.text.tokenizer.prompt import framed
from kotha.text.tokenizer.tokenizer import Tokenizer

_MARIAN_PAIR = "source.spm"
_TOKENIZER_FILES = (*KNOWN_FILES, _MARIAN_PAIR)
_TOKENIZER_CONFIG, _JINJA_FILE = "tokenizer_config.json", "chat_template.jinja"
_OTHER_FILES = ("merges.txt", _TOKENIZER_CONFIG, _JINJA_FILE)
_MOST_CARD_BYTES = 1 << 20
_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MAX_INDEX_BYTES = 1 << 24
# Maximum number of embedding rows without a token, which pad the table to a round number; more indicate a mismatch.
_SPARE_ROWS, _SPARE_SHARE = 1024, 0.1


@dataclass(frozen=True)
class Imported:
    """An imported model, with remarks for the user."""

    bundle: Bundle
    layout: Layout
    remarks: tuple[Text, ...]


def import_model(
    folder: Path, out: Path, *, with_tokenizer: bool = True, lines: Sequence[str] | None = None, overwrite: bool = False
) -> tuple[Imported, ParityReport]:
    """Import a Hugging Face folder as a model folder, and compare the model with transformers."""
    if out.resolve() == folder.resolve():
        raise UsageError("{path} is the source folder; choose another folder for the output", path=out)
    check_place(out, overwrite)
    found = import_hf(folder, with_tokenizer)
    # Before writing, so that a folder that transformers cannot open leaves no output.
    report = check_hf(folder, found.bundle, found.layout, lines)
    report.architecture = found.layout.architecture
    report.remarks += found.remarks
    save(out, found.bundle.model, found.bundle.tokenizer, overwrite, chat=found.bundle.chat, card=_card(folder))
    return found, report


def import_hf(folder: Path, with_tokenizer: bool = True) -> Imported:
    """Load a Hugging Face folder as a Kotha model, without writing anything or running code from it."""
    if not exists(folder):
        raise KothaError("{path} not found; give the path of a Hugging Face folder", path=folder)
    if not exists(folder / CONFIG_FILE):
        raise KothaError("{path} is not a Hugging Face folder: it has no {name}", path=folder, name=CONFIG_FILE)
    values = read_table(inside(folder, CONFIG_FILE))
    try:
        layout, full = read_config(values)
    except KothaError as error:
        raise KothaError("{path}: {why}", path=folder / CONFIG_FILE, why=reason(error)) from error
    has_settings = is_file(folder / _TOKENIZER_CONFIG)
    tokenizer_config = read_table(inside(folder, _TOKENIZER_CONFIG)) if has_settings else {}
    tokenizer = _tokenizer(folder) if with_tokenizer and isinstance(full, TextConfig) else None
    if tokenizer is not None and isinstance(full, TextConfig):
        _check_tokenizer(folder, values, tokenizer, full)
        if type(full) is GPTConfig and tokenizer.marks_before is None:
            # Texts start with the token that transformers adds, if any.
            adds = tokenizer_config.get("add_bos_token") is True and "bos" in tokenizer.special
            tokenizer = framed(tokenizer, [tokenizer.special["bos"]] if adds else [])
    ours, absent = _read_weights(folder, layout, full)
    widest = reduce(torch.promote_types, (tensor.dtype for tensor in ours.values()))
    ours = {name: tensor.to(widest) for name, tensor in ours.items()}  # lossless
    config = _without_fills(ours, full, recorded(values, layout, full))
    remarks: list[Text] = []
    if isinstance(full, TextConfig) and tokenizer is None:
        remarks.append(Message("imported without a tokenizer; the model accepts token ids only"))
    if absent:
        remarks.append(
            Message("the folder has no {names}; zeros are used instead, which do not change the result", names=absent)
        )
    jinja, chat = tokenizer_config.get("chat_template"), None if tokenizer is None else ChatTemplate.of(tokenizer)
    if is_file(folder / _JINJA_FILE):
        jinja = inside(folder, _JINJA_FILE).read_text(encoding="utf-8", errors="replace")
    if chat is not None and chat.jinja() != jinja:
        chat = None
    if jinja is not None and chat is None:
        remarks.append(
            Message(
                "its chat template is a program that Kotha does not run; in a chat, the model continues the text "
                "without a template",
            )
        )
    model = assemble(shape_alone(config, len(ours)), ours)
    return Imported(Bundle(model, tokenizer, chat), layout, tuple(remarks))


# -- the files ---------------------------------------------------------------------------------------------------------


class FoundWeight(NamedTuple):
    """A weight in a file that has not been read yet."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str  # the name of the type in the file

    def read(self) -> Tensor:
        """Read the weight into its own memory."""
        with reading_weights(self.file), safetensors.safe_open(self.file, framework="pt") as opened:
            weight: Tensor = opened.get_tensor(self.name)
            return weight


def find_weights(folder: Path) -> list[FoundWeight]:
    """Find all weights in a folder, by their names in the files, without reading them."""
    if exists(folder / _FILE):
        return _weights_of(inside(folder, _FILE))
    if not exists(folder / _INDEX):
        raise KothaError(
            "{path} has no weights: neither {file} nor {index} found; convert other formats to safetensors",
            path=folder,
            file=_FILE,
            index=_INDEX,
        )
    shard_of = read_table(inside(folder, _INDEX), most_bytes=_MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(shard_of, dict) or not shard_of or not all(isinstance(each, str) for each in shard_of.values()):
        raise KothaError(
            "{path} is damaged: weight_map must map each weight to the file that contains it", path=folder / _INDEX
        )
    files = [inside(folder, shard) for shard in sorted(set(shard_of.values()))]
    found = [weight for file in files for weight in _weights_of(file)]
    for name, shard in {(weight.name, weight.file.name) for weight in found} ^ set(shard_of.items()):
        raise KothaError(
            "{path} and {shard} disagree on where {name!r} is stored",
            path=folder / _INDEX,
            shard=shard,
            name=name[:200],
        )
    return found


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder; raise an error if a path or link points outside the folder."""
    if not name or name in (".", "..") or any(character in name for character in "/\\\0") or len(name) > 255:
        raise KothaError("{name!r} is not a valid file name in {path}", name=name[:200], path=folder)
    try:
        target = (folder / name).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:  # ValueError: a lone surrogate
        raise KothaError("{path} has no {name}, or it is a broken link", path=folder, name=name) from error
    roots = [folder.resolve()]
    if folder.resolve().parent.name == "snapshots":  # the hub's cache stores the files in blobs/
        roots.append(folder.resolve().parent.parent / "blobs")
    if not any(target.is_relative_to(root) for root in roots):
        raise KothaError(
            "{path} links to {target}, outside the folder; replace the link with the file itself",
            path=folder / name,
            target=target,
        )
    if not is_file(target):
        raise KothaError("{path} is not a file", path=folder / name)
    return folder / name


def _weights_of(file: Path) -> list[FoundWeight]:
    header, _ = read_header(file)  # limits the header size; the library checks the rest
    with reading_weights(file), safetensors.safe_open(file, framework="numpy"):
        return [FoundWeight(file, name, tuple(each["shape"]), each["dtype"]) for name, each in header.items()]


# -- the weights ------------------------------------------------------------------------------------------------------


def _read_weights(folder: Path, layout: Layout, config: ModelConfig) -> tuple[dict[str, Tensor], list[str]]:
    """Return the weights by Kotha's names, in their stored types, and the names of missing optional weights.

    All names are matched before any weight is read; unknown and missing weights raise an error.
    """
    found = find_weights(folder)
    try:
        model = shape_alone(config, len(found))
    except KothaError as error:
        raise KothaError("{path}: {why} in its files", path=folder, why=reason(error)) from error
    shapes = shapes_of(model.named_parameters(remove_duplicate=False))
    expected = layout.reference_weights(shapes, config)
    shared = {layout.name_of(name): layout.name_of(first) for name, first in first_names(model).items()}
    placed: dict[str, list[FoundWeight]] = {}
    for weight in found:
        name = layout.usual(weight.name, expected)
        if name is not None:
            _check(weight, expected.get(name))
            placed.setdefault(shared.get(name, name), []).append(weight)
    absent = [name for name in expected if name not in placed and shared.get(name, name) == name]
    for name in absent:
        if not name.startswith(tuple(layout.may_lack)):
            raise KothaError("{path} has no {name}, which its config requires", path=folder, name=name)
    theirs = {name: weights[0].read() for name, weights in placed.items()}
    for name, (first, *copies) in placed.items():
        for copy in copies:
            if not torch.equal(theirs[name], copy.read()):
                raise KothaError(
                    "{path}: {name} differs from {other}, but the config ties them",
                    path=copy.file,
                    name=copy.name,
                    other=first.name,
                )
    dtype = next(iter(theirs.values())).dtype
    theirs |= {name: torch.zeros(expected[name].shape, dtype=dtype) for name in absent}
    return layout.from_reference_layout(theirs, shapes, config), absent


def _check(weight: FoundWeight, place: ReferenceWeight | None) -> None:
    if place is None:
        raise KothaError(
            "{path} contains {name}, which its config does not define", path=weight.file, name=weight.name[:200]
        )
    if weight.shape != place.shape or weight.dtype not in DTYPES.values():
        raise KothaError(
            "{path}: {name} has shape {shape} and type {dtype}; the config requires shape {asked} and one of "
            "the types {names}",
            path=weight.file,
            name=weight.name,
            shape=str(list(weight.shape)),
            dtype=weight.dtype,
            asked=str(list(place.shape)),
            names=list(DTYPES.values()),
        )


def _without_fills(ours: dict[str, Tensor], full: ModelConfig, exact: ModelConfig | None) -> ModelConfig:
    """Remove the biases that an export added, if Kotha's own config is known and they are still zero."""
    if exact is None:
        return full
    expected = first_names(shape_alone(exact, len(ours)))
    unknown = [name for name in ours if name not in expected]
    if any(torch.count_nonzero(ours[name]) for name in unknown):
        return full  # the model was trained further by another program
    for name in unknown:
        del ours[name]
    return exact


# -- the tokenizer ----------------------------------------------------------------------------------------------------


def _tokenizer(folder: Path) -> Tokenizer | None:
    """Return the folder's tokenizer, or None."""
    present = [name for name in (*_TOKENIZER_FILES, *_OTHER_FILES) if exists(folder / name)]
    for name in present:
        inside(folder, name)
    if _MARIAN_PAIR in present and "tokenizer.json" not in present:
        raise KothaError(
            "{path} has two SentencePiece models (Marian), one for each language, but a Kotha model has one "
            "tokenizer; import without the tokenizer",
            path=folder,
        )
    return import_tokenizer(folder) if set(present) & set(_TOKENIZER_FILES) else None


def _card(folder: Path) -> str | None:
    """Return the folder's model card, which is preserved because it describes the training data and the license."""
    if not is_file(folder / CARD_FILE):
        return None
    with inside(folder, CARD_FILE).open("rb") as stream:
        return stream.read(_MOST_CARD_BYTES).decode("utf-8", errors="replace")


def _check_tokenizer(folder: Path, values: dict[str, Any], tokenizer: Tokenizer, config: TextConfig) -> None:
    """Raise an error for a tokenizer that was not made for the model."""
    n_tokens, n_rows = tokenizer.vocab_size, config.vocab_size
    ids = [values.get(f"{role}_token_id") for role in ("bos", "eos", "pad")]
    wrong: Text | None = None
    if not n_rows - max(_SPARE_ROWS, _SPARE_SHARE * n_rows) <= n_tokens <= n_rows:
        wrong = Message("it has {n:,} tokens, but the model has {rows:,}", n=n_tokens, rows=n_rows)
    elif any(isinstance(token, int) and not 0 <= token < n_tokens for token in ids):
        wrong = Message(
            "{file} refers to token ids {ids}, but the tokenizer has only {n:,} tokens",
            file=CONFIG_FILE,
            ids=str(ids),
            n=n_tokens,
        )
    if wrong is not None:
        raise KothaError(
            "{path}: the tokenizer does not match the model: {wrong}; replace it, or import without the tokenizer",
            path=folder,
            wrong=wrong,
        )
