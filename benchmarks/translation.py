"""Compare Kotha's translator with ``torch.nn.Transformer`` trained by the same recipe: BLEU and chrF++ on unseen pairs.

    python benchmarks/translation.py ../shared/data/parallel/en-bn.tsv.zst [--tests supara_test risingnews_test]
        [--directions en-bn bn-en] [--preset pocket-seq2seq] [--steps 20000] [--seeds 0 1 2] [--limit 200]
        [--out FOLDER] [--done RESULTS.json …] [--set dropout=0.3 batch_size=128]

The file has a column ``source`` with the origin of each pair; the pairs from the test sources are held out. For each
direction and seed, both models are trained on the same pairs, in the same batches, with one tokenizer for both
languages, the same sizes, learning rates, label smoothing and number of steps; the weights with the lowest validation
loss are kept. Kotha's model is trained by ``kotha train`` on a table. The other model has torch's encoder and decoder
with torch's initial weights and final norms, and is trained with torch's AdamW in a plain loop, with dropout where
torch applies it, including in attention. For translation its weights are copied into a Kotha model, so that both use
the same beam search (tests and a comparison of the logits check that the models are equal). Pairs that overlap with a
test sentence are removed from training.

``--limit`` uses only this many pairs from each part, to test the script. Ten translations of each test set are printed
and saved for inspection. ``--done`` reads results from the files of other processes (one seed and direction each, run
in parallel on one GPU) instead of measuring them. The means over seeds and the largest deviations are printed last.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record
import torch
from torch import Tensor, nn

from kotha.api.examples import measure_pairs
from kotha.artifacts import model_folder as bundle
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.evaluation.translation import TranslationScore, evaluate_pairs
from kotha.finetune.examples import ExamplesRequest, start
from kotha.finetune.pairs import TranslatePairs
from kotha.finetune.splits import Parts, divide
from kotha.model.config import Seq2SeqConfig, config_from_dict
from kotha.model.seq2seq import Seq2Seq
from kotha.text.corpus.pairs import TextPairs
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.device import choose_arithmetic
from kotha.training.optim import learning_rate_share
from kotha.training.tasks.examples import Translation

READ = 10  # number of translations of each test set that are saved for reading
NAMES = {
    "layers": "blocks",
    "self_attn": "attention",
    "multihead_attn": "cross",
    "out_proj": "output",
    "linear1": "feedforward.up",
    "linear2": "feedforward.down",
    "norm1": "attention_norm",
}


class TorchTranslator(nn.Module):
    """``nn.Transformer`` between the embeddings and the head of a Kotha model, to which it can be converted."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.shell = Seq2Seq(config)
        self.stacks = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.dropout,
            config.activation,
            batch_first=True,
            norm_first=config.norm_order == "pre",
        )

    @property
    def head(self) -> nn.Linear:
        return self.shell.head

    def hidden(self, source: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        """Return the inputs to the head, which the task requires from a model."""
        hidden = None if real is None else ~real
        found: Tensor = self.stacks(
            self.shell._embed(source)[0],
            self.shell._embed(target)[0],
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device),
            tgt_is_causal=True,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )
        return found

    def learned(self) -> list[tuple[str, nn.Parameter]]:
        """Return the trained modules: torch's stacks and our token embeddings."""
        return [*self.stacks.named_parameters(), ("tokens.weight", self.shell.tokens.weight)]

    def as_ours(self) -> Seq2Seq:
        """Convert to a Kotha model; torch stores queries, keys and values in one matrix, and numbers its norms."""
        weights = {}
        for name, weight in self.stacks.state_dict().items():
            for theirs, ours in NAMES.items():
                name = name.replace(theirs, ours)
            name = name.replace("norm2", "cross_norm" if name.startswith("decoder") else "feedforward_norm")
            name = name.replace("norm3", "feedforward_norm")
            if "in_proj_" in name:
                for part, third in zip(("query", "key", "value"), weight.chunk(3), strict=True):
                    weights[name.replace("in_proj_", f"{part}.")] = third
            else:
                weights[name] = weight
        self.shell.load_state_dict(weights, strict=False)
        return self.shell


def learn_theirs(
    model: Seq2SeqConfig, config: TrainConfig, task: Translation, tokenizer: Tokenizer
) -> tuple[Bundle, dict[str, Any]]:
    """Train torch's transformer in a plain loop over the task's batches."""
    arithmetic = choose_arithmetic(config.precision, None)
    torch.manual_seed(config.seed)
    theirs = TorchTranslator(model.replace(final_norm=True)).to(arithmetic.device)  # nn.Transformer ends in a norm
    optimizer = torch.optim.AdamW(
        [
            {"params": [each for _, each in theirs.learned() if each.dim() >= 2], "weight_decay": config.weight_decay},
            {"params": [each for _, each in theirs.learned() if each.dim() < 2], "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
    )
    began, best, kept, best_step = time.perf_counter(), float("inf"), {}, 0
    for step in range(config.steps):
        theirs.train()
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * learning_rate_share(step, config)
        optimizer.zero_grad(set_to_none=True)
        with arithmetic.autocast():
            (loss,) = task.losses(theirs, task.batch(step, 0, config.batch_size).to(arithmetic.device)).values()
        loss.backward()
        nn.utils.clip_grad_norm_([each for _, each in theirs.learned()], config.gradient_clip or float("inf"))
        optimizer.step()
        if (step + 1) % config.evaluate_every == 0 or step + 1 == config.steps:
            nats = validate(theirs, task, arithmetic)
            print(f"  nn.Transformer, step {step + 1:,}: validation {nats:.4f} nats", flush=True)
            if nats < best:
                best, best_step = nats, step + 1
                kept = {name: each.detach().clone() for name, each in theirs.state_dict().items()}
    seconds = time.perf_counter() - began
    theirs.load_state_dict(kept)
    ours = theirs.eval().as_ours().eval()
    check_equal(theirs, ours, task)
    return Bundle(ours, tokenizer), {"validation_nats": best, "best_step": best_step, "seconds": round(seconds, 1)}


@torch.no_grad()
def validate(model: TorchTranslator, task: Translation, arithmetic: Any) -> float:
    """Return nats per token on the validation part."""
    model.eval()
    nats = count = 0.0
    for batch in task.validation():
        with arithmetic.autocast():
            nats += float(task.measure(model, batch.to(arithmetic.device))["tokens"])
        count += batch.targets["tokens"]
    return nats / count


@torch.no_grad()
def check_equal(theirs: TorchTranslator, ours: Seq2Seq, task: Translation) -> None:
    """Check that the converted model equals the trained one."""
    device = next(theirs.parameters()).device
    tensors = task.validation()[0].to(device)
    source, target, real = tensors["source"], tensors["target"][:, :-1].clamp(min=0), tensors["real"]
    both = theirs.head(theirs.hidden(source, target, real)), ours(source, target, real)
    asked = tensors["target"][:, 1:] >= 0  # padding may differ, because torch masks it differently
    distance = float((both[0] - both[1])[asked].abs().max())
    assert distance < 1e-2, f"the logits of the converted and the trained model differ by {distance:g}"


def read(file: Path, direction: str, tests: list[str], limit: int | None) -> tuple[TextPairs, dict[str, TextPairs]]:
    """Read the training pairs, and the pairs of each test, by the column ``source``."""
    data = file.read_bytes()
    if file.suffix == ".zst":
        import zstandard

        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    names, *rows = (line.split("\t") for line in data.decode().splitlines())
    origin, source, target = (names.index(name) for name in ("source", *direction.split("-")))
    parts: dict[str, list[tuple[str, str]]] = {name: [] for name in ("", *tests)}
    for row in rows:
        parts[row[origin] if row[origin] in tests else ""].append((row[source], row[target]))
    order = random.Random(0)
    found = {name: order.sample(pairs, min(limit or len(pairs), len(pairs))) for name, pairs in parts.items()}
    read = {name: TextPairs(*(tuple(side) for side in zip(*pairs, strict=True))) for name, pairs in found.items()}
    return read.pop(""), read


def together(tests: list[TextPairs]) -> TextPairs:
    sources, targets = ([text for each in tests for text in getattr(each, side)] for side in ("sources", "targets"))
    return TextPairs(tuple(sources), tuple(targets))


def figures(score: TranslationScore, pairs: TextPairs) -> dict[str, Any]:
    rows = zip(pairs.sources[:READ], score.translations[:READ], pairs.targets[:READ], strict=True)
    return {
        "bleu": round(score.bleu, 2),
        "chrf": round(score.chrf, 2),
        "sentences": score.sentences,
        "signatures": [score.bleu_signature, score.chrf_signature],
        "read": [{"source": source, "translation": found, "reference": wanted} for source, found, wanted in rows],
    }


def compare(given: argparse.Namespace, direction: str, seed: int) -> dict[str, Any]:
    """Compare both translators on each test set, for one direction and seed."""
    pairs, tests = read(given.data, direction, given.tests, given.limit)
    parts: Parts[TextPairs] = divide(pairs, test=together([*tests.values()]), seed=seed)
    for remark in parts.remarks:
        print(f"{direction}: {remark}", flush=True)
    settings = {**record.from_words(given.set), "seed": seed}
    if given.steps is not None:
        settings["steps"] = given.steps
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / "run")
        # Its own evaluation uses only a few held-out pairs; all of them are translated below, with both models.
        test = parts.test.chosen(range(min(READ, len(parts.test))))
        held_out: dict[str, Any] = {"validation": parts.validation, "test": test}
        request = ExamplesRequest(given.preset, changes=settings, data=parts.train, **held_out)
        summary = start(
            TranslatePairs(measure_pairs), request, folder, on_remark=lambda said: print(f"  {said}", flush=True)
        )
        about = folder.about()
        model, config = config_from_dict(about["model"]), TrainConfig().change(**about["training"])
        tokenizer = Tokenizer.load(folder.path)
        ours = bundle.load(folder.best_model, "cuda" if torch.cuda.is_available() else "cpu")
    assert isinstance(model, Seq2SeqConfig)
    encoded = [
        [*zip(tokenizer.encode_batch(list(each.sources)), tokenizer.encode_batch(list(each.targets)), strict=True)]
        for each in (parts.train, parts.validation)
    ]
    task = Translation(model, config, *encoded, tokenizer)
    theirs, learned = learn_theirs(model, config, task, tokenizer)
    own = {
        "validation_nats": summary["validation"]["loss_nats"],
        "best_step": summary["best_step"],
        "seconds": round(summary["seconds"], 1),
    }
    found: dict[str, Any] = {
        "seed": seed,
        "pairs": len(parts.train),
        "vocabulary": tokenizer.vocab_size,
        "steps": config.steps,
    }
    for name, model_and_words, how in (("kotha", ours, own), ("nn.Transformer", theirs, learned)):
        count = sum(weight.numel() for weight in model_and_words.model.parameters())
        found[name] = {"parameters": count, **how}
        for test, held_out in tests.items():
            score = evaluate_pairs(model_and_words, held_out)
            found[name][test] = figures(score, held_out)
            print(
                f"{direction}, seed {seed}, {name}, {test}: BLEU {score.bleu:.2f}, chrF++ {score.chrf:.2f}", flush=True
            )
    return found


def means(runs: list[dict[str, Any]], tests: list[str]) -> dict[str, Any]:
    """Return the mean of each figure over seeds, and the largest deviation of a seed from the mean."""
    found: dict[str, Any] = {}
    for name in ("kotha", "nn.Transformer"):
        for test in tests:
            for figure in ("bleu", "chrf"):
                values = [run[name][test][figure] for run in runs]
                mean = statistics.mean(values)
                spread = max(abs(value - mean) for value in values)
                found.setdefault(name, {}).setdefault(test, {})[figure] = [round(mean, 2), round(spread, 2)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tests", nargs="+", default=["supara_test", "risingnews_test"])
    parser.add_argument("--directions", nargs="+", default=["en-bn", "bn-en"])
    parser.add_argument("--preset", default="pocket-seq2seq")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--done", type=Path, nargs="+", default=[])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--set", nargs="+", default=[])
    given = parser.parse_args()
    result: dict[str, Any] = {"preset": given.preset, "limit": given.limit, "directions": {}}
    done = [run for path in given.done for run in record.figures(path)["directions"].items()]
    for direction in given.directions:
        runs = [run for name, each in done if name == direction for run in each["seeds"]]
        measured = {run["seed"] for run in runs}
        runs += [compare(given, direction, seed) for seed in given.seeds if seed not in measured]
        result["directions"][direction] = {"means": means(runs, given.tests), "seeds": runs}
        for test in given.tests:
            for row in runs[0]["kotha"][test]["read"]:
                print(f"\n{row['source']}\n  kotha:  {row['translation']}\n  person: {row['reference']}")
    record.save("translation", result, ["torch", "sacrebleu"], given.out)


if __name__ == "__main__":
    main()
