"""Contamination: check whether the documents in a text were part of a run's training data.

A score on training text measures memorization, not prediction. A document is considered seen if nearly all of its token
windows occur somewhere in the shards, so a text is also found if it was divided into documents differently. A document
shorter than a window is considered seen only if the shards contain an equal document.

The windows of the text are stored as sorted polynomial hashes, computed by doubling the window length step by step. The
shards are read once, so memory use does not depend on the size of the data.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kotha.artifacts.run_folder import BEST_MODEL, find_data, run_config, words
from kotha.evaluation.perplexity import Contamination
from kotha.i18n.message import Message
from kotha.text.held_out import HeldOut, Line
from kotha.text.shards import Dataset, Split

Hashes = NDArray[np.uint64]

# Base-2 logarithm of the window length in tokens. Although the built-in stories share complete sentences, at most half
# of the windows of a document occur in 3,000 others.
_DOUBLINGS = 4
_WINDOW = 1 << _DOUBLINGS
# A document is considered seen if at least this share of its windows is found.
_NEARLY_ALL = 0.8
_CHUNK = 1 << 22
_FACTOR, _SPREAD = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93


def look_up(text: HeldOut, run: Path | None) -> Contamination | None:
    """Count the documents in a text that were in the data of a run, or of the models that it was started from.

    Returns None if no document was found and the data or tokenizer of any of these models is unknown.
    """
    trained, held_out = np.zeros(text.documents, np.bool_), np.zeros(text.documents, np.bool_)
    complete = True
    for each in _lineage(run):
        data = None if each is None else find_data(run_config(each), each)
        folder = None if data is None else Dataset(data, verify=False)
        if folder is None or folder.tokenizer.fingerprint != text.tokenizer:
            complete = False
            continue
        trained |= _found(text, folder["train"])
        held_out |= _found(text, folder["validation"])
    n, n_trained, n_held_out = text.documents, int(trained.sum()), int((held_out & ~trained).sum())
    if not complete and not n_trained:
        return None
    verdict = Message("new")
    if n in (n_trained, n_held_out):
        verdict = Message("seen in training") if n_trained else Message("held out")
    elif n_trained or n_held_out:
        some = "{share:.0%} seen in training" if n_trained else "{share:.0%} held out, the rest new"
        verdict = Message(some, share=max(0.01, (n_trained or n_held_out) / n))
    return Contamination(n, n_trained, n_held_out, verdict)


def _lineage(run: Path | None) -> Iterator[Path | None]:
    """Yield the folder of a run, then that of the run it was started from, and so on; None for an unknown one."""
    known = set[Path]()
    here = None if run is None else _run_at([run])
    while here not in known:
        yield here
        origin = None if here is None else words(run_config(here), "origin")
        if here is None or origin is None:
            return
        known.add(here)
        here = _run_at([Path(origin), here.parent / Path(origin).name])


def _run_at(places: Sequence[Path]) -> Path | None:
    """Return the first run folder among these places; the best weights of a run count as the run."""
    candidates = (each for place in places for each in (place, place.parent if place.name == BEST_MODEL else place))
    return next((each for each in candidates if run_config(each)), None)


def _found(text: HeldOut, split: Split) -> NDArray[np.bool_]:
    """Return for each document in a text whether it is in a split: (documents,)."""
    lengths = np.diff(text.offsets)
    long = lengths >= _WINDOW
    found = np.zeros(len(lengths), np.bool_)
    if long.any():
        hashes = window_hashes(text.line)
        n_windows = np.where(long, lengths - _WINDOW + 1, 0)
        owners = np.repeat(np.arange(len(lengths)), n_windows)  # index of the document, for windows within one document
        starts = np.arange(n_windows.sum()) - np.repeat(np.cumsum(n_windows) - n_windows, n_windows)
        wanted = hashes[text.offsets[:-1][owners] + starts]
        held = np.isin(wanted, _among(split, np.unique(wanted)))
        shares = np.bincount(owners, held, len(lengths)) / np.maximum(1, n_windows)
        found = long & (shares >= _NEARLY_ALL)
    offsets: Line = np.asarray(split.offsets, np.int64)
    short = np.flatnonzero(np.isin(np.diff(offsets), lengths[~long]))
    equals = {np.asarray(split[int(index)], np.int64).tobytes() for index in short}
    for index in np.flatnonzero(~long):
        found[index] = text.line[text.offsets[index] : text.offsets[index + 1]].tobytes() in equals
    return found


def window_hashes(line: Line) -> Hashes:
    """Return a hash of each window of a line: (n,) -> (n - 15,); the windows double in length at each step.

    >>> twice = np.tile(np.arange(40), 2)
    >>> hashes = window_hashes(twice)
    >>> len(hashes), bool(hashes[0] == hashes[40]), bool(hashes[0] == hashes[1])
    (65, True, False)
    """
    hashes = (line.astype(np.uint64) + np.uint64(1)) * np.uint64(_SPREAD)
    hashes ^= hashes >> np.uint64(32)
    for doubling in range(_DOUBLINGS):
        size = 1 << doubling
        hashes = hashes[:-size] * np.uint64(pow(_FACTOR, size, 1 << 64)) + hashes[size:]
    return hashes


def _among(split: Split, wanted: Hashes) -> Hashes:
    """Return the hashes in ``wanted`` (sorted) that occur in a split; chunks overlap by a window minus one token."""
    held = np.zeros(len(wanted), np.bool_)
    for shard in split.shards:
        for start in range(0, len(shard) - _WINDOW + 1, _CHUNK):
            hashes = window_hashes(np.asarray(shard[start : start + _CHUNK + _WINDOW - 1], np.int64))
            found = np.searchsorted(wanted, hashes).clip(max=len(wanted) - 1)
            held[found[wanted[found] == hashes]] = True
    return wanted[held]
