"""Compare a learner's piece with ours: equal weights, the same random inputs, and the known mistakes."""

import inspect
import math
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kotha.course.pieces.variants import ACCEPTED, PIECES, Build, PieceSpec, variants
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

_LIBRARIES = (str(Path(__file__).parents[2]), str(Path(torch.__file__).parent), sysconfig.get_path("stdlib"))


@dataclass(frozen=True)
class PieceResult:
    """The result of a check; a notebook shows its message."""

    passed: bool
    message: str  # in the learner's language
    difference: float | None = None  # the largest difference from ours; None if the results cannot be compared
    mistake: str | None = None  # the name of the recognised mistake, such as "no-scale"

    def __repr__(self) -> str:
        return self.message


@dataclass
class _Case:
    """One comparison: the weights of both, the inputs, and both results."""

    sizes: tuple[int, ...]
    inputs: tuple[Any, ...]
    call: str
    weights: dict[str, Tensor] = field(default_factory=dict)
    problem: Message | None = None  # with the names of the layers
    ours: Tensor = field(default_factory=Tensor)
    theirs: Tensor = field(default_factory=Tensor)

    def run(self, build: Build) -> Any:
        """Run a class or function on the inputs, with the weights of this case."""
        if not self.sizes:
            return build(*self.copies())
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # equal weights in layers with names that we do not know
            module: nn.Module = build(*self.sizes).eval()
        _load(module, self.weights)
        return module(*self.copies())

    def copies(self) -> list[Any]:
        """Return the inputs; tensors are copied, because a learner's code may change them."""
        return [each.clone() if isinstance(each, Tensor) else each for each in self.inputs]


class _FailedError(Exception):
    """A check that ends before the values can be compared."""

    def __init__(self, message: Message) -> None:
        super().__init__()
        self.message = message


def check_piece(piece: Any, language: Language | None = None) -> PieceResult:
    """Implement ``kotha.course.check``."""
    build: Build = type(piece) if isinstance(piece, nn.Module) else piece
    name, ours = _identify(build)
    language = language or ("bn" if os.environ.get("KOTHA_LANGUAGE") == "bn" else "en")

    def result(passed: bool, text: Message, difference: float | None = None, mistake: str | None = None) -> PieceResult:
        shown = translate(Message("{name}: {text}", name=build.__name__, text=text), language)
        return PieceResult(passed, shown, difference, mistake)

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        try:
            cases = list(_compare(ours, build))
        except _FailedError as failed:
            return result(False, failed.message)
        difference = max((_difference(each) for each in cases), key=lambda each: math.inf if each is None else each)
        if all(_same(each.ours, each.theirs) for each in cases):
            return result(
                True, _equal("Equal to ours; no number differs by more than {bound}.", difference), difference
            )
        for variant in variants(name):
            if all(_gives(each, variant.build) for each in cases):
                if variant.name in ACCEPTED:
                    return result(True, _equal(variant.message, difference), difference)
                return result(False, Message(variant.message), difference, variant.name)
        return result(False, _unknown(cases), difference)


def _equal(template: str, difference: float | None) -> Message:
    """Fill in the next power of ten above the difference."""
    return Message(template, bound=f"{10.0 ** math.ceil(math.log10(max(difference or 0.0, 1e-7))):.0e}")


def _identify(build: Build) -> tuple[str, PieceSpec]:
    """Return the piece that a class or function is, according to its name."""
    written = getattr(build, "__name__", repr(build))
    plain = written.lower().replace("_", "")
    for name, piece in PIECES.items():
        if any(word in plain for word in piece.words):
            return name, piece
    raise UsageError(
        "{name} is not one of the pieces; its name must contain one of: {names}",
        name=written,
        names=[piece.words[0] for piece in PIECES.values()],
    )


def _compare(ours: PieceSpec, build: Build) -> Iterator[_Case]:
    """Run both pieces on every case."""
    names = list(inspect.signature(ours.reference).parameters)
    for sizes, make in ours.cases:
        inputs = make()
        made = f"{build.__name__}({', '.join(f'{key}={size}' for key, size in zip(names, sizes, strict=False))})"
        function = getattr(ours.reference, "forward", ours.reference)
        keys = [each for each in inspect.signature(function).parameters if each != "self"]
        given = ", ".join(
            f"{key}: {tuple(each.shape)}" if isinstance(each, Tensor) else f"{key}={each}"
            for key, each in zip(keys, inputs, strict=True)
        )
        case = _Case(sizes, inputs, f"{made}({given})" if sizes else f"{build.__name__}({given})")
        if sizes:
            theirs = _guarded(made, build, *sizes)
            if not isinstance(theirs, nn.Module):
                raise _FailedError(
                    Message("The class is not an nn.Module: write class {name}(nn.Module).", name=build.__name__)
                )
            case.weights, case.problem = _equal_weights(ours.reference(*sizes), theirs, case.call)
        case.ours = case.run(ours.reference)
        case.theirs = _tensor(_guarded(case.call, case.run, build), case.call)
        again = _guarded(case.call, case.run, build)
        if not _same(torch.as_tensor(again), case.theirs):
            raise _FailedError(
                Message("The same input gives different results: use nn.Dropout, which is off outside training.")
            )
        yield case


def _guarded(call: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run the learner's code; an exception becomes a message with the learner's line."""
    try:
        return function(*arguments)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(". ")
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if not frame.filename.startswith(_LIBRARIES) and "site-packages" not in frame.filename
        ]
        if not frames:
            raise _FailedError(Message("Your code raises {error}. We called {call}.", error=text, call=call)) from error
        values = {"error": text, "line": str(frames[-1].lineno), "code": frames[-1].line or "…", "call": call}
        raise _FailedError(
            Message("Your code raises {error}, in line {line}: {code}\nWe called {call}.", **values)
        ) from error


def _tensor(found: Any, call: str) -> Tensor:
    """Return a result as a tensor, if it is one."""
    if found is None:
        raise _FailedError(Message("Nothing is returned: end the function with return."))
    if not isinstance(found, Tensor | float):
        kind = type(found).__name__
        raise _FailedError(
            Message("The result is of type {kind}, not a tensor. We called {call}.", kind=kind, call=call)
        )
    return torch.as_tensor(found).detach().float()


def _equal_weights(ours: nn.Module, theirs: nn.Module, call: str) -> tuple[dict[str, Tensor], Message | None]:
    """Return random weights for both, and a message if the learner's layers have other names.

    Biases that the learner leaves out default to 0 and norm weights to 1; a head without its own matrix shares the
    token embedding matrix.
    """
    named = dict(theirs.named_parameters(remove_duplicate=False))
    weights, missing = {}, []
    for name, parameter in ours.named_parameters():
        is_norm = name.endswith("norm.weight")
        scale = 1.2 / math.sqrt(parameter.shape[1]) if parameter.dim() == 2 else 0.3
        weights[name] = is_norm + scale * torch.randn(parameter.shape)
        if name not in named:
            if parameter.dim() == 2 and name != "head.weight":
                missing.append(name.removesuffix(".weight"))
            weights[name] = weights[name] if parameter.dim() == 2 else torch.full(parameter.shape, float(is_norm))
        elif named[name].shape != parameter.shape:
            shapes = {"found": str(tuple(named[name].shape)), "expected": str(tuple(parameter.shape))}
            raise _FailedError(
                Message(
                    "{layer} has the shape {found}, expected {expected}. We called {call}.",
                    layer=name,
                    call=call,
                    **shapes,
                )
            )
    head = named.get("head.weight")
    if "head.weight" in weights and (head is None or head.data_ptr() == named["tokens.weight"].data_ptr()):
        weights["head.weight"] = weights["tokens.weight"]
    for name in named.keys() - weights.keys():
        if name.endswith("bias"):
            weights[name] = torch.zeros(named[name].shape)
    unknown = sorted({name.removesuffix(".weight") for name in named.keys() - weights.keys()})
    names = list(dict.fromkeys(name.split(".")[-2] for name, _ in ours.named_parameters()))
    if unknown:
        return weights, Message("Unknown layers: {unknown}. Use our names: {names}.", unknown=unknown, names=names)
    return weights, Message(
        "Missing layers: {missing}. We have: {names}.", missing=missing, names=names
    ) if missing else None


def _load(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy weights by name; of several names for the same tensor, the first one counts."""
    for name, parameter in reversed(list(module.named_parameters(remove_duplicate=False))):
        if name in weights:
            parameter.copy_(weights[name])


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two results are equal up to rounding; NaN equals NaN."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


def _gives(case: _Case, build: Build) -> bool:
    """Whether a variant of our piece gives the learner's result."""
    try:
        return _same(case.run(build), case.theirs)
    except (RuntimeError, IndexError):  # the variant cannot handle this case
        return False


def _difference(case: _Case) -> float | None:
    if case.ours.shape != case.theirs.shape:
        return None
    return float((case.ours - case.theirs).abs().max())


def _unknown(cases: list[_Case]) -> Message:
    """Describe how the results differ if no known mistake explains it."""
    for case in cases:
        if case.problem is not None:
            return case.problem
        if case.ours.shape != case.theirs.shape:
            shapes = {"found": str(tuple(case.theirs.shape)), "expected": str(tuple(case.ours.shape))}
            return Message(
                "The result has the shape {found}, expected {expected}. We called {call}.", call=case.call, **shapes
            )
    case = next(each for each in cases if not _same(each.ours, each.theirs))
    off = ~torch.isclose(case.ours, case.theirs, rtol=1e-4, atol=1e-5)
    return Message(
        "The shape is right, but not the numbers: the largest difference is {difference}, the first wrong number is at"
        " {index}. This is none of the mistakes that we know; compare your code with ours, line by line.",
        difference=f"{_difference(case):.2g}",
        index=str(off.nonzero()[0].tolist()),
    )
