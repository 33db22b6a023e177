"""Correct the checksums inside an input after it was mutated.

Otherwise nearly every input would be rejected because of a wrong hash before the loader has parsed anything.
"""

import hashlib
import json
from pathlib import Path, PurePath
from typing import Any

from tests.fuzz.layers import Parcel

from kotha.evaluation.judge.session import JUDGEMENTS, PAIRS, BlindPair, JudgingSession


def data(parcel: Parcel) -> Parcel:
    """Correct the hashes of a data folder's shards, if they are still listed."""
    result = _table(parcel, "dataset.json")
    splits = result.get("splits")
    for name, split in splits.items() if isinstance(splits, dict) else ():
        if not isinstance(split, dict):
            continue
        split["offsets_sha256"] = _sha256(parcel.get(f"{name}.offsets", b""))
        for shard in split["shards"] if isinstance(split.get("shards"), list) else ():
            if isinstance(shard, dict):
                shard["sha256"] = _sha256(parcel.get(str(shard.get("file")), b""))
    return {**parcel, "dataset.json": json.dumps(result).encode()} if result else parcel


def checkpoints(parcel: Parcel) -> Parcel:
    """Correct the hashes in the manifest of each checkpoint."""
    mended = dict(parcel)
    for manifest in [name for name in parcel if name.endswith("manifest.json")]:
        result, folder = _table(parcel, manifest), PurePath(manifest).parent
        if result:
            held = {name: _sha256(parcel.get(str(folder / name), b"")) for name in result}
            mended[manifest] = json.dumps(held).encode()
    return mended


def judging(parcel: Parcel) -> Parcel:
    """Correct the fingerprint of the pairs in each judge's file."""
    pairs = _table(parcel, PAIRS).get("pairs")
    try:
        held = tuple(map(BlindPair.read, pairs or ()))
        mark = JudgingSession(Path(), (), held).fingerprint
    except (KeyError, TypeError, ValueError):
        return parcel
    mended = dict(parcel)
    for name in [name for name in parcel if name.startswith(f"{JUDGEMENTS}/")]:
        if told := _table(parcel, name):
            mended[name] = json.dumps({**told, "pairs": mark}).encode()
    return mended


def _table(parcel: Parcel, name: str) -> dict[str, Any]:
    try:
        found = json.loads(parcel.get(name, b""))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
