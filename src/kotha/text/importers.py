"""Tokenizers from elsewhere: ``tokenizer.json``, ``spiece.model``, ``vocab.txt``, ``vocab.json`` + ``merges.txt``, a hub name.

An imported tokenizer gives the ids that its own library gives; its normalization stays its own.
"""

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from kotha.errors import TokenizerError
from kotha.text import spiece
from kotha.text.special import BERT
from kotha.text.tokenizer import FILE_NAME, Tokenizer

# What a folder or a hub repository is searched for, best first.
_KNOWN_FILES = (FILE_NAME, "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "vocab.txt", "vocab.json")
_MAX_FILE_BYTES = 256 * 1024 * 1024
_SPACE = "\u2581"
# A control piece must never be the best reading of a text that merely spells its name.
_NEVER = -1000.0


def import_tokenizer(source: str | Path, hub: "Hub | None" = None) -> Tokenizer:
    """Open a tokenizer from a file, a folder, or a hub name such as ``csebuetnlp/banglat5``."""
    path = Path(source)
    if path.is_dir():
        return _from_folder(path)
    if path.is_file():
        return _from_file(path)
    name = str(source)
    if name.count("/") == 1 and not name.startswith((".", "/", "~")) and not path.suffix:
        return _from_hub(name, hub or Hub())
    raise TokenizerError(f"no tokenizer at {source}; give a file, a folder, or a hub name such as owner/name")


def _from_folder(folder: Path) -> Tokenizer:
    for name in _KNOWN_FILES:
        if (folder / name).is_file():
            return _from_file(folder / name)
    others = sorted(folder.glob("*.model"))
    if len(others) == 1:
        return _from_file(others[0])
    raise TokenizerError(f"{folder} holds none of {', '.join(_KNOWN_FILES)}")


def _from_file(path: Path) -> Tokenizer:
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise TokenizerError(f"{path} has {path.stat().st_size:,} bytes, far more than any tokenizer")
    if path.suffix == ".model":
        try:
            return Tokenizer(_from_spiece(spiece.read_model(path.read_bytes())))
        except TokenizerError as error:
            raise TokenizerError(f"{path}: {error}") from error
    if path.name == "vocab.json" or path.name == "merges.txt":
        return Tokenizer(_from_merges(path.with_name("vocab.json"), path.with_name("merges.txt")))
    if path.suffix == ".txt":
        return Tokenizer(_from_vocab_txt(path))
    if path.suffix == ".json":
        return Tokenizer.load(path)
    raise TokenizerError(f"{path}: ending {path.suffix!r} is not known; known: .json, .model, .txt (one piece a line)")


# -- SentencePiece --------------------------------------------------------------------------------------------------


def _from_spiece(model: spiece.SentencePieceModel) -> tokenizers.Tokenizer:
    if model.model_type == "unigram":
        core: models.Model = _unigram_model(model)
    elif model.model_type == "bpe":
        core = _bpe_model(model)
    else:
        raise TokenizerError(f"a SentencePiece model of kind {model.model_type}; only unigram and bpe can be read")
    backend = tokenizers.Tokenizer(core)
    steps: list[normalizers.Normalizer] = []
    if model.charsmap:
        # `tokenizers` looks a charsmap up letter by letter and gives up on long letters, so it misses ে + া; the maps in
        # use are all of NFKC's family, and composing first changes nothing else.
        steps += [normalizers.NFC(), normalizers.Precompiled(model.charsmap)]
    if model.remove_extra_whitespaces:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    backend.normalizer = normalizers.Sequence(steps)
    scheme = "always" if model.add_dummy_prefix else "never"
    backend.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme=scheme)
    strip = [decoders.Strip(" ", 1, 0)] if model.add_dummy_prefix else []
    backend.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    control = {spiece.UNKNOWN, spiece.CONTROL}
    backend.add_special_tokens([piece for piece, _, kind in model.pieces if kind in control])
    extra = [piece for piece, _, kind in model.pieces if kind == spiece.USER_DEFINED]
    backend.add_tokens([AddedToken(piece, normalized=False) for piece in extra])
    return backend


def _unigram_model(model: spiece.SentencePieceModel) -> models.Unigram:
    unknown = next((index for index, (_, _, kind) in enumerate(model.pieces) if kind == spiece.UNKNOWN), None)
    if unknown is None:
        raise TokenizerError("a SentencePiece model without an unknown piece")
    readable = (spiece.NORMAL, spiece.USER_DEFINED)
    vocabulary = [(piece, score if kind in readable else _NEVER) for piece, score, kind in model.pieces]
    return models.Unigram(vocabulary, unk_id=unknown, byte_fallback=model.byte_fallback)


def _bpe_model(model: spiece.SentencePieceModel) -> models.BPE:
    """SentencePiece keeps no merges: a pair may merge when its result is a piece, the better piece first."""
    ids = {piece: index for index, (piece, _, _) in enumerate(model.pieces)}
    ranked = []
    for index, (piece, score, kind) in enumerate(model.pieces):
        for cut in range(1, len(piece) if kind == spiece.NORMAL else 1):
            left, right = piece[:cut], piece[cut:]
            if left in ids and right in ids:
                ranked.append((-score, index, ids[left], ids[right], (left, right)))
    unknown = next((piece for piece, _, kind in model.pieces if kind == spiece.UNKNOWN), None)
    merges = [entry[-1] for entry in sorted(ranked)]
    return models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=model.byte_fallback)


# -- vocabulary files -----------------------------------------------------------------------------------------------


def _from_vocab_txt(path: Path) -> tokenizers.Tokenizer:
    """BERT's: one piece a line. Case and accents are kept unless a tokenizer_config.json beside it says otherwise."""
    lines = _read_text(path).splitlines()
    ids = {piece: index for index, piece in enumerate(lines) if piece}
    if BERT["unk"] not in ids:
        raise TokenizerError(f"{path}: no {BERT['unk']} among its {len(ids):,} lines; is it a WordPiece vocabulary?")
    config = path.with_name("tokenizer_config.json")
    settings = _read_json(config) if config.is_file() else {}
    backend = tokenizers.Tokenizer(models.WordPiece(ids, unk_token=BERT["unk"], max_input_chars_per_word=100))
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=bool(settings.get("do_lower_case", False)), strip_accents=settings.get("strip_accents")
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(cleanup=False)
    present = [piece for piece in BERT.values() if piece in ids]
    backend.add_special_tokens(present)
    start, end = BERT["cls"], BERT["sep"]
    if start in ids and end in ids:
        backend.post_processor = processors.BertProcessing((end, ids[end]), (start, ids[start]))
    return backend


def _from_merges(vocabulary: Path, merges: Path) -> tokenizers.Tokenizer:
    """GPT-2's: byte-level pieces in vocab.json, a merge a line in merges.txt."""
    for path in (vocabulary, merges):
        if not path.is_file():
            raise TokenizerError(f"{path} is missing; vocab.json and merges.txt belong together")
    ids = _read_json(vocabulary)
    if not ids or not all(isinstance(index, int) for index in ids.values()):
        raise TokenizerError(f"{vocabulary}: expected an object from piece to id")
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if sum(character in ids for character in alphabet) < 200:
        raise TokenizerError(f"{vocabulary}: not a byte-level vocabulary (GPT-2's kind); other BPE files cannot be read")
    pairs = []
    for number, line in enumerate(_read_text(merges).splitlines(), start=1):
        if not line or line.startswith("#version"):
            continue
        left, space, right = line.partition(" ")
        if not space or left + right not in ids:
            raise TokenizerError(f"{merges}, line {number}: {line!r} is not a merge of two pieces of {vocabulary.name}")
        pairs.append((left, right))
    backend = tokenizers.Tokenizer(models.BPE(ids, pairs))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([piece for piece in ids if piece.startswith("<|") and piece.endswith("|>")])
    return backend


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path}: bad UTF-8 at byte {error.start}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise TokenizerError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise TokenizerError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


# -- the hub --------------------------------------------------------------------------------------------------------


def _from_hub(name: str, hub: "Hub") -> Tokenizer:
    files = hub.list_files(name)
    for file in _KNOWN_FILES:
        if file in files:
            beside = [other for other in ("merges.txt", "tokenizer_config.json") if other in files]
            for other in beside:
                hub.download(name, other)
            return _from_file(hub.download(name, file))
    raise TokenizerError(f"the hub repository {name} holds none of {', '.join(_KNOWN_FILES)}")


class Hub:
    """The Hugging Face hub: what a repository holds, and a file of it on this disk."""

    def list_files(self, name: str) -> list[str]:
        """The files of a repository."""
        try:
            from huggingface_hub import HfApi
            from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
        except ImportError as error:
            raise TokenizerError("a hub name needs huggingface_hub: pip install 'kotha[hub]'") from error
        try:
            return [sibling.rfilename for sibling in HfApi().model_info(name, timeout=10).siblings or []]
        except (RepositoryNotFoundError, HFValidationError) as error:
            raise TokenizerError(f"no file or folder {name}, and no hub repository of that name") from error
        except Exception as error:  # no network, a proxy's refusal: each its own class in other libraries
            raise TokenizerError(f"no file or folder {name}, and the hub cannot be reached ({error})") from error

    def download(self, name: str, file: str) -> Path:
        """A file of a repository, in the hub's own cache."""
        from huggingface_hub import hf_hub_download

        try:
            return Path(hf_hub_download(name, file))
        except Exception as error:
            raise TokenizerError(f"{file} of the hub repository {name} could not be fetched ({error})") from error
