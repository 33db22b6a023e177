"""Every message exists in both languages with the same placeholders, and no template is built at run time.

These tests cover every package with a catalogue in ``i18n/bn``.
"""

import ast
import json
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import docstring_parser
import pytest

from kotha.api.options import is_setting
from kotha.errors import CorpusError, KothaError
from kotha.i18n.catalogue import FOLDER, catalogue, to_json, translate
from kotha.i18n.message import Message, Option, Plural
from kotha.i18n.numbers import Count, Duration, Size
from kotha.storage.locks import InUseError

SOURCE = Path(__file__).parents[2] / "src" / "kotha"
PACKAGES = sorted(file.stem for file in (FOLDER / "bn").glob("*.json"))
MESSAGES = {"Message", "Plural", "ProgressMessage"}


def modules(package: str) -> list[Path]:
    return sorted((SOURCE / package).rglob("*.py")) if (SOURCE / package).is_dir() else [SOURCE / f"{package}.py"]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def errors() -> frozenset[str]:
    """The names of all subclasses of KothaError."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }
    found = {"KothaError"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return frozenset(found)


def calls(package: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls that create messages and errors: (file and line, call)."""
    for path in modules(package):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in errors() | MESSAGES:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


def templates(call: ast.Call) -> list[str]:
    given = call.args[:2] if ast.unparse(call.func).endswith("Plural") else call.args[:1]
    return [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_message_template_is_built_at_run_time(package: str) -> None:
    built = [
        where for where, call in calls(package) if call.args and isinstance(call.args[0], ast.JoinedStr | ast.BinOp)
    ]
    assert not built, "give the template and its values: raise DataError('no {name}', name=name)"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_message_is_in_the_catalogue(package: str) -> None:
    missing = {
        template: where
        for where, call in calls(package)
        for template in templates(call)[-1:]
        if template not in catalogue("bn") and any(letter.isalpha() for letter in "".join(literal(template)))
    }
    assert not missing, f"add its Bangla to i18n/bn/{package}.json"


def literal(template: str) -> list[str]:
    return [text for text, *_ in Formatter().parse(template)]


@pytest.mark.parametrize("package", PACKAGES)
def test_both_languages_have_the_same_values(package: str) -> None:
    file = FOLDER / "bn" / f"{package}.json"
    for english, bangla in json.loads(file.read_text(encoding="utf-8")).items():
        if "{" in english or "{" in bangla:
            assert names(english) == names(bangla), english


def said(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from said(each)


@pytest.mark.parametrize(
    "file", ["doctor/advice.json", "faults.json", "plan/cluster.json", "plan/render.json", "reporting/curves.json"]
)
def test_texts_of_data_files_are_in_the_catalogue(file: str) -> None:
    (path,) = SOURCE.glob(f"*/{file}")
    words = {text: " ".join(literal(text)).split() for text in said(json.loads(path.read_text(encoding="utf-8")))}
    sentences = {text for text, parts in words.items() if sum(part.isalpha() for part in parts) > 1}
    assert sentences and not sentences - catalogue("bn").keys()


def test_the_catalogue_has_no_orphans() -> None:
    strings = {
        node.value
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for file in SOURCE.rglob("*.json"):  # texts in data files
        if not {"i18n", "static"} & set(file.relative_to(SOURCE).parts):
            strings |= set(said(json.loads(file.read_text(encoding="utf-8"))))
    # Help is translated paragraph by paragraph, and argument by argument.
    helped = {" ".join(part.split()) for each in strings for part in each.split("\n\n")}
    documented = [docstring_parser.parse(each) for each in strings if "Args:\n" in each]
    helped |= {argument.description for each in documented for argument in each.params}
    assert not catalogue("bn").keys() - strings - helped, "no module uses this template"


def test_a_template_is_in_one_catalogue_only() -> None:
    seen: dict[str, str] = {}
    for package in PACKAGES:
        for template in json.loads((FOLDER / "bn" / f"{package}.json").read_text(encoding="utf-8")):
            assert template not in seen, f"{template!r} is in {seen[template]} and {package}"
            seen[template] = package


def test_values_are_written_as_the_language_does(monkeypatch: pytest.MonkeyPatch) -> None:
    result = "{n:,} tokens of {path} in {time}; {size}, {share:.1%}; {more}"
    bangla = "{path} ফাইলে {n:,}টি টোকেন, {time}, {size}, {share:.1%}; {more}। ({n}, 3) = {n}"
    monkeypatch.setitem(catalogue("bn"), result, bangla)
    values = {"n": 2_312_741, "path": Path("a1.txt"), "time": Duration(600), "size": Size(3.2e9), "share": 0.5}
    message = Message(result, more=Option("overwrite", True), **values)
    assert str(message) == "2,312,741 tokens of a1.txt in 10 minutes; 3.2 GB, 50.0%; overwrite=True"
    assert translate(message, "bn", flags=True) == (
        "a1.txt ফাইলে ২৩,১২,৭৪১টি টোকেন, ১০ মিনিট, ৩.২ GB, ৫০.০%; --overwrite। (2312741, 3) = 2312741"
    )


def test_a_part_of_a_sentence_may_begin_with_the_mark_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogue("bn"), "; did you mean {n}, {name!r}?", "। {n}, {name!r} লিখতে চেয়েছিলেন?")
    message = Message("; did you mean {n}, {name!r}?", n=7, name="train")
    assert translate(message, "bn") == "। ৭, 'train' লিখতে চেয়েছিলেন?"


def test_a_message_may_hold_messages_and_lists() -> None:
    inner = Plural("{n} model", "{n} models", n=1)
    message = Message("{what}: {names}", what=inner, names=["a", "b"])
    assert str(message) == translate(message) == "1 model: a, b"
    assert to_json(message)["values"]["what"]["one"] == "{n} model"
    assert to_json(Message("{n}", n=Count(3)))["values"] == {"n": {"count": 3}}


def test_a_sentence_may_convert_a_value_and_begin_with_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogue("bn"), "no {name!r}{more}", "{name!r} নেই{more}")
    monkeypatch.setitem(catalogue("bn"), "; take {n}", "। {n}টি নিন।")
    message = Message("no {name!r}{more}", name="a", more=Message("; take {n}", n=3))
    assert translate(message, "bn") == "'a' নেই। ৩টি নিন।"


def test_a_template_without_values_is_literal() -> None:
    assert str(KothaError('not valid JSON: {"a": 1}')) == 'not valid JSON: {"a": 1}'


@pytest.mark.parametrize(
    "error", [CorpusError("{n} broken", ways=("skip",), n=3), InUseError(Path("a"), " 7"), KothaError("{x}", x="{y}")]
)
def test_errors_can_be_pickled(error: KothaError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


# Names of fields in files, of arguments that no command has, and of what is written as NAME=VALUE.
FIELDS = {"family", "model_type", "chat_template", "labels", "tokens", "size"}


def test_no_message_spells_an_argument_out() -> None:
    """An argument is an `Option`: ``by='words'`` in Python, but ``--by words`` in a command's message."""
    spelled = {
        (name, template)
        for package in PACKAGES
        for _, call in calls(package)
        for template in templates(call)
        for name in re.findall(r"(?<![-\w])([a-z_]+)=(?:\{|')", template)
        if name not in FIELDS and not is_setting(name)  # a setting is written as --set NAME=VALUE
    }
    assert not spelled, "pass Option(name, value)"
