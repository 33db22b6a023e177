"""Write the model card of the bundled model; all figures come from the results file."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
CARD = Path(__file__).parent.parent / "src" / "kotha" / "storage" / "bundled" / "README.md"
NAMES = {"tagore": "Tagore's fiction", "wikipedia": "leads of Bangla Wikipedia", "stories": "the built-in stories"}

TEMPLATE = Path(__file__).parent / "bundled_card.template.md"
WHO = ("written", "held_out")
LICENCES = {"tagore": "public domain", "wikipedia": "CC BY-SA 4.0", "stories": "this project's, Apache-2.0"}


def read(name: str) -> Any:
    """Return the figures in a results file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def card() -> str:
    """Return the card as Markdown."""
    found, samples = read("bundled_model"), read("bundled_samples")
    trained, splits = found["trials"]["box"]["summary"], found["data"]["splits"]
    held = found["int8"]["all"]
    unread = [each for each in samples["texts"] + samples["others"] if each["times_read"] == 0]
    sources = [
        f"| {NAMES[name]} | {each['passages']:,} | {each['bytes']:,} | {LICENCES[name]} |"
        for name, each in found["sources"].items()
    ]
    last = found["last"]["splits"]["train"]
    sources.append(
        f"| second stage: new stories, and part of the text above | {last['documents']:,} | {last['bytes']:,} | |"
    )
    scores = [_score(NAMES.get(name, "all of it"), each) for name, each in found["int8"].items()]
    recitation = [
        f"| {NAMES[name]} | "
        + " | ".join(f"{found['recitation'][name][who][of]:.2%}" for of in ("people", "grammar") for who in WHO)
        + " |"
        for name in NAMES
    ]
    return TEMPLATE.read_text(encoding="utf-8").format(
        **{name: found["model"][name] for name in ("n_layers", "d_model", "n_heads", "context_length", "vocab_size")},
        parameters=found["parameters"],
        megabytes=sum(found["bytes"].values()) / 1e6,
        cost=found["taught_int8"]["all"]["bits_per_byte"] - found["taught"]["all"]["bits_per_byte"],
        seconds=trained["seconds"],
        tokens=trained["tokens"],
        teachers=" and ".join(f"{found['trials'][name]['summary']['seconds']:.0f} s" for name in ("box-t1", "box-t2")),
        last_seconds=found["settled"]["seconds"],
        last_tokens=found["settled"]["tokens"],
        taught_tagore=found["taught"]["tagore"]["bits_per_byte"],
        taught_wikipedia=found["taught"]["wikipedia"]["bits_per_byte"],
        epochs=trained["tokens"] / splits["train"]["tokens"],
        train_tokens=splits["train"]["tokens"],
        train_bytes=splits["train"]["bytes"],
        held_documents=held["documents"],
        held_bytes=held["bytes"],
        sources="\n".join(sources),
        scores="\n".join(scores),
        recitation="\n".join(recitation),
        run=found["recitation"]["words"],
        coherent=_coherent(samples["texts"]),
        samples=len(samples["texts"]),
        others_coherent=_coherent(samples["others"]),
        others=len(samples["others"]),
        unread_coherent=_coherent(unread),
        unread=len(unread),
        variety=found["writing"]["written"]["variety"],
        people_variety=found["writing"]["people"]["variety"],
    )


def _coherent(texts: list[dict[str, Any]]) -> int:
    return sum(each["coherent"] for each in texts)


def _score(name: str, found: dict[str, Any]) -> str:
    counted = [f"{found['baselines'][each]:.3f}" for each in ("5-gram", "3-gram", "unigram")]
    return f"| {name} | {found['bits_per_byte']:.3f} | {found['bits_per_character']:.3f} | {' | '.join(counted)} |"


def write_card() -> None:
    """Write the card into the model folder."""
    CARD.write_text(card(), encoding="utf-8")
