"""Import tokenizers: ``tokenizer.json``, SentencePiece ``.model``, ``vocab.txt``, ``vocab.json``, or a hub name.

An imported tokenizer returns the same ids as its original library and keeps its normalization. There are three known
exceptions, all for SentencePiece: decomposed letters of other Indic scripts and of Korean are not composed here; in a
BPE model, text that spells a control piece (``<s>``) can become one unknown token here; and spaces next to user-defined
pieces can differ (see `_from_spiece`).
"""

from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from kotha.errors import TokenizerError
from kotha.i18n.message import Message, Option
from kotha.storage import bundled
from kotha.storage.json_files import read_table
from kotha.storage.status import is_directory, is_file, matching
from kotha.text.corpus.hub import hub_download, hub_files
from kotha.text.tokenizer import spiece
from kotha.text.tokenizer.pipeline import assembled
from kotha.text.tokenizer.special import BERT
from kotha.text.tokenizer.tokenizer import FILE_NAME, MAX_FILE_BYTES, Tokenizer, check_size, library_errors

# Files to look for in a folder or a hub repository, in order of preference.
KNOWN_FILES = (FILE_NAME, "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "vocab.txt", "vocab.json")
_KNOWN_ENDINGS = (".json", ".model", ".txt")
# Settings files that may accompany a vocabulary.
_SETTINGS = ("tokenizer_config.json", "config.json")
# T5's sentinels are numbered in reverse: <extra_id_0> has the last id.
_T5_SENTINELS = 100
_MAX_SENTINELS = 1 << 16
_SPACE = "\u2581"
# `tokenizers` applies a charsmap per grapheme and skips graphemes of six bytes, so it misses ে + া and ে + ৗ, which all
# common maps (variants of NFKC) compose. (NFC before the map would also reorder nukta and hasanta.)
_TWO_PART_VOWELS = (normalizers.Replace("\u09c7\u09be", "\u09cb"), normalizers.Replace("\u09c7\u09d7", "\u09cc"))
# The score of control pieces, so low that the best segmentation never uses one for text that spells its name.
_NEVER = -1000.0


def import_tokenizer(source: str | Path, *, extra_ids: int | None = None) -> Tokenizer:
    """Import a tokenizer from a file, a folder, or a hub name such as ``csebuetnlp/banglat5``; ``box`` is bundled.

    ``extra_ids`` is the number of sentinels (``<extra_id_0>`` …) to append to a SentencePiece model (T5 has 100). The
    default is the number in the settings files next to the model, or 0 if there are no such files.
    """
    path, name = bundled.model_path(source), str(source)
    if is_directory(path):
        known = [file for file in KNOWN_FILES if is_file(path / file)]
        found = known or [file.name for file in matching(path, "*.model")]
        path = path / _best_file(path, found if known or len(found) == 1 else [])
    elif not is_file(path):
        if name.count("/") != 1 or name.startswith((".", "/", "~")) or name.endswith(("/", *_KNOWN_ENDINGS)):
            raise TokenizerError(
                "no tokenizer at {source}; train one with `kotha tokenizer train`, or specify a file, a folder or a "
                "hub name (owner/name)",
                source=source,
            )
        path = _from_hub(name)
    return _from_file(path, extra_ids)


def _best_file(folder: str | Path, found: list[str]) -> str:
    if not found:
        raise TokenizerError(
            "{folder} contains no tokenizer (none of {known}); train one with `kotha tokenizer train`",
            folder=folder,
            known=[*KNOWN_FILES],
        )
    return found[0]


def _from_file(path: Path, extra_ids: int | None) -> Tokenizer:
    if path.suffix not in _KNOWN_ENDINGS:
        raise TokenizerError(
            "{path}: unknown file extension {ending!r}; supported: {known}",
            path=path,
            ending=path.suffix,
            known=[*_KNOWN_ENDINGS],
        )
    check_size(path)
    if extra_ids is not None and (extra_ids < 0 or path.suffix != ".model"):
        raise TokenizerError(
            "{extra_ids} is invalid for {path}: only SentencePiece models support sentinels, and their number must not "
            "be negative",
            extra_ids=Option("extra_ids", extra_ids),
            path=path,
        )
    if path.suffix == ".json" and path.name != "vocab.json":
        return Tokenizer.load(path)
    with library_errors(Message("{path} cannot be imported as a tokenizer", path=path)):
        if path.suffix == ".model":
            model = spiece.read_model(path.read_bytes())
            return Tokenizer(_from_spiece(model, _sentinels(path) if extra_ids is None else extra_ids))
        if path.name in ("vocab.json", "merges.txt"):
            return Tokenizer(_from_merges(path.with_name("vocab.json"), path.with_name("merges.txt")))
        return Tokenizer(_from_vocab_txt(path))


# -- SentencePiece --------------------------------------------------------------------------------------------------


def _settings(path: Path) -> dict[str, Any]:
    """Return the contents of the settings files next to a vocabulary, by file name."""
    files = [path.with_name(name) for name in _SETTINGS if is_file(path.with_name(name))]
    return {file.name: read_table(file, error=TokenizerError, most_bytes=MAX_FILE_BYTES) for file in files}


def _sentinels(path: Path) -> int:
    """Return the number of sentinels from the settings next to a model, because the model file does not contain it."""
    settings = _settings(path)
    tokenizer = settings.get("tokenizer_config.json", {})
    if type(tokenizer.get("extra_ids")) is int:
        return int(tokenizer["extra_ids"])
    is_t5 = str(tokenizer.get("tokenizer_class", "")).startswith("T5Tokenizer")
    return _T5_SENTINELS if is_t5 or settings.get("config.json", {}).get("model_type") == "t5" else 0


def _from_spiece(model: spiece.SentencePieceModel, extra_ids: int) -> tokenizers.Tokenizer:
    known = {piece for piece, _, _ in model.pieces}
    sentinels = [f"<extra_id_{number}>" for number in reversed(range(min(extra_ids, _MAX_SENTINELS)))]
    model.pieces += [(sentinel, 0.0, spiece.CONTROL) for sentinel in sentinels if sentinel not in known]
    if model.model_type == "unigram":
        core: models.Model = _unigram_model(model)
    elif model.model_type == "bpe":
        core = _bpe_model(model)
    else:
        raise TokenizerError(
            "a SentencePiece model of type {kind}; only unigram and bpe are supported", kind=model.model_type
        )
    if not model.space_before:
        raise TokenizerError(
            "a SentencePiece model with spaces after words; only models with spaces before words are supported"
        )
    steps: list[normalizers.Normalizer] = []
    if model.charsmap:
        steps += [*_TWO_PART_VOWELS, normalizers.Precompiled(model.charsmap)]
    if model.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex("\\A +| +\\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    if model.add_dummy_prefix:
        steps.append(normalizers.Prepend(" "))
    # Words are split unless a piece crosses a space, such as a run of spaces or a phrase.
    crossing = any(_SPACE in piece[1:] for piece, _, _ in model.pieces)
    splitter = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="never", split=not crossing)
    strip = [decoders.Strip(" ", 1, 0)] if model.add_dummy_prefix else []
    decoder = decoders.Sequence([decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    control = [piece for piece, _, kind in model.pieces if kind in (spiece.UNKNOWN, spiece.CONTROL)]
    backend = assembled(core, control, decoder, splitter, normalizers.Sequence(steps))
    if model.model_type == "bpe":
        # Matched first, as in SentencePiece. Unlike in SentencePiece, a space next to such a piece may be added or
        # lost.
        extra = [piece for piece, _, kind in model.pieces if kind == spiece.USER_DEFINED]
        backend.add_tokens([AddedToken(piece, normalized=False) for piece in extra])
    return backend


def _unigram_model(model: spiece.SentencePieceModel) -> models.Unigram:
    unknown = next((index for index, (_, _, kind) in enumerate(model.pieces) if kind == spiece.UNKNOWN), None)
    if unknown is None:
        raise TokenizerError("the SentencePiece model has no unknown piece")
    best = max((score for _, score, kind in model.pieces if kind == spiece.NORMAL), default=0.0)

    def score_of(piece: str, score: float, kind: int) -> float:
        if kind == spiece.NORMAL:
            return round(score, 8)  # `tokenizers` does not restore longer decimals exactly
        if kind == spiece.USER_DEFINED:  # SentencePiece's bonus, so that these pieces are always used
            return round(len(piece.encode()) * best - 0.1, 8)
        return _NEVER

    vocabulary = [(piece, score_of(piece, score, kind)) for piece, score, kind in model.pieces]
    return models.Unigram(vocabulary, unk_id=unknown, byte_fallback=model.byte_fallback)


def _bpe_model(model: spiece.SentencePieceModel) -> models.BPE:
    """Build a BPE model; merges are derived from the pieces, best score first, because SentencePiece stores none."""
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
    """Read BERT's format, one piece per line; case and accents are kept unless tokenizer_config.json says otherwise."""
    ids = {piece: index for index, piece in enumerate(path.read_text(encoding="utf-8").split("\n")) if piece}
    if BERT["unk"] not in ids:
        raise TokenizerError(
            "there is no {unknown} among its {n:,} lines; is it a WordPiece vocabulary?",
            unknown=BERT["unk"],
            n=len(ids),
        )
    settings = _settings(path).get("tokenizer_config.json", {})
    strip_accents = settings.get("strip_accents")
    normalizer = normalizers.BertNormalizer(
        lowercase=bool(settings.get("do_lower_case", False)),
        strip_accents=None if strip_accents is None else bool(strip_accents),
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
    )
    model = models.WordPiece(ids, unk_token=BERT["unk"], max_input_chars_per_word=100)
    present = [piece for piece in BERT.values() if piece in ids]
    decoder = decoders.WordPiece(cleanup=False)
    backend = assembled(model, present, decoder, pre_tokenizers.BertPreTokenizer(), normalizer)
    start, end = BERT["cls"], BERT["sep"]
    if start in ids and end in ids:
        backend.post_processor = processors.BertProcessing((end, ids[end]), (start, ids[start]))
    return backend


def _from_merges(vocabulary: Path, merges: Path) -> tokenizers.Tokenizer:
    """Read GPT-2's format: byte-level pieces in vocab.json and one merge per line in merges.txt."""
    for path in (vocabulary, merges):
        if not is_file(path):
            raise TokenizerError("{path} is missing; vocab.json and merges.txt must be in the same folder", path=path)
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend = assembled(models.BPE.from_file(str(vocabulary), str(merges)), (), decoders.ByteLevel(), splitter)
    pieces = backend.get_vocab()
    if sum(character in pieces for character in pre_tokenizers.ByteLevel.alphabet()) < 200:
        raise TokenizerError("not a byte-level vocabulary as in GPT-2; other BPE files are not supported")
    backend.add_special_tokens([piece for piece in pieces if piece.startswith("<|") and piece.endswith("|>")])
    return backend


# -- the hub --------------------------------------------------------------------------------------------------------


def _from_hub(name: str) -> Path:
    files = [file for file, _ in hub_files(name, "model")]
    found = _best_file(name, [file for file in KNOWN_FILES if file in files])
    for other in ("merges.txt", *_SETTINGS):
        if other in files:
            hub_download(name, other, "model")
    return hub_download(name, found, "model")
