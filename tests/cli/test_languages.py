"""Languages: pages open in the user's language, and a model's own language is that of its text, from start to end."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import kotha
from kotha.artifacts.own_text import model_language, own_lines, own_opening
from kotha.cli.main import main
from kotha.export.parity import AWKWARD_LINES, comparison_lines

# Short texts written for these tests; the corpora recombine their sentences.
SENTENCES = {
    "de": (
        "Der alte Fischer wohnt am Fluss. Seine Frau backt jeden Morgen frisches Brot. Die Kinder laufen durch den "
        "Garten. Im Winter liegt der Schnee bis zum Fenster. Der Lehrer schreibt ein langes Wort an die Tafel. Unsere "
        "Katze schläft gern auf dem Ofen. Am Abend brennt noch Licht in der Küche. Der Zug nach Hamburg hat heute "
        "Verspätung. Meine Schwester lernt seit einem Jahr Geige. Der Bäcker öffnet schon um sechs Uhr. Auf dem Markt "
        "gibt es Äpfel und Birnen. Der Wind treibt die Wolken über das Dorf. Niemand weiß, wem das Haus gehört. Die "
        "Großmutter erzählt eine Geschichte aus ihrer Jugend. Wir fahren morgen mit dem Fahrrad zum See. Der Hund "
        "wartet vor der Schule. Im Frühling blühen die Bäume an der Straße. Der Arzt kommt heute nicht mehr. Die "
        "Brücke ist nach dem Regen gesperrt. Mein Vater repariert das Boot. Das Mädchen liest ein Buch über Sterne. "
        "Der Nachbar grüßt freundlich. Hinter dem Wald liegt ein kleines Tal. Die Uhr im Turm schlägt zwölf."
    ),
    "hi": (
        "नदी के किनारे एक छोटा गाँव है। मेरी दादी रोज़ सुबह चाय बनाती हैं। बच्चे आँगन में खेल रहे हैं। किसान खेत में "
        "काम करता है। आज बहुत तेज़ बारिश हो रही है। मेरा भाई शहर में पढ़ता है। बाज़ार में ताज़ी सब्ज़ियाँ मिलती हैं। "
        "शिक्षक ने हमें एक कहानी सुनाई। पेड़ पर एक चिड़िया बैठी है। माँ ने रोटी और दाल बनाई। रेलगाड़ी समय पर नहीं आई। "
        "पिताजी अख़बार पढ़ रहे हैं। लड़की ने नया गीत सीखा। पहाड़ों पर बर्फ़ गिर रही है। हम कल मेले में जाएँगे। डॉक्टर "
        "ने दवा लिख दी। बूढ़ा आदमी धीरे धीरे चलता है। स्कूल गाँव के बाहर है। रात को आसमान में तारे दिखते हैं। मेरे "
        "दोस्त के पास एक साइकिल है। कुत्ता दरवाज़े पर सो रहा है। किताब मेज़ पर रखी है। यह रास्ता जंगल से होकर जाता है। "
        "सब लोग एक साथ खाना खाते हैं।"
    ),
    "as": (
        "নৈৰ পাৰত এখন সৰু গাঁও আছে। মোৰ আইতাই ৰাতিপুৱা চাহ বনায়। ল'ৰা-ছোৱালীবোৰে চোতালত খেলি আছে। খেতিয়কজনে পথাৰত কাম "
        "কৰে। আজি বৰকৈ বৰষুণ দিছে। মোৰ ভাইটিয়ে চহৰত পঢ়ে। বজাৰত সতেজ শাক-পাচলি পোৱা যায়। শিক্ষকে আমাক এটা সাধু ক'লে। "
        "গছৰ ডালত এটা চৰাই বহি আছে। মায়ে ভাত আৰু দাইল ৰান্ধিছে। ৰেলখন সময়মতে নাহিল। দেউতাই বাতৰি কাকত পঢ়ি আছে। "
        "ছোৱালীজনীয়ে নতুন গীত এটা শিকিলে। পাহাৰত কুঁৱলী নামিছে। আমি কাইলৈ মেলালৈ যাম। ডাক্তৰে ঔষধ লিখি দিলে। বুঢ়া মানুহজন "
        "লাহে লাহে খোজ কাঢ়ে। বিদ্যালয়খন গাঁৱৰ বাহিৰত। ৰাতি আকাশত তৰা দেখা যায়। মোৰ বন্ধুৰ এখন চাইকেল আছে। কুকুৰটো "
        "দুৱাৰমুখত শুই আছে। কিতাপখন মেজৰ ওপৰত আছে। এই বাটটো হাবিৰ মাজেৰে গৈছে। সকলোৱে একেলগে ভাত খায়।"
    ),
}
SCRIPT = {"de": "A-Za-zÄÖÜäöüß", "hi": "\u0900-\u0963\u0970-\u097f", "as": "\u0980-\u09ff"}


def write_corpus(file: Path, language: str, documents: int = 120) -> Path:
    """Write documents of eight sentences each, in random order."""
    sentences, draw = re.findall(r"\S[^.।]*[.।]", SENTENCES[language]), random.Random(language)
    texts = (" ".join(draw.sample(sentences, 8)) for _ in range(documents))
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return file


@pytest.fixture(scope="module", params=["de", "hi", "as"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A folder with a corpus, a tokenizer, a data folder and a run in one language, made by commands."""
    language: str = request.param
    folder = tmp_path_factory.mktemp(language)
    corpus = str(write_corpus(folder / "corpus.jsonl", language))
    assert main(["tokenizer", "train", corpus, "--vocab-size", "600", "--out", str(folder / "tok")]) == 0
    assert main(["prepare", corpus, "--tokenizer", str(folder / "tok"), "--out", str(folder / "data")]) == 0
    sizes = [word for size in ("d_model=32", "n_layers=2", "n_heads=2", "batch_size=4") for word in ("--set", size)]
    words = ["train", str(folder / "data"), "--preset", "pocket", "--steps", "6", "--out", str(folder / "run"), *sizes]
    assert main(words) == 0
    return language, folder


def page_of(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the language in which a page opens, and its data."""
    html = path.read_text(encoding="utf-8")
    (language,) = re.findall(r'<html lang="(\w+)">', html)
    return language, json.loads(html.split('id="data">')[1].split("</script>")[0])


def is_in(language: str, text: str) -> bool:
    """Whether most characters of a text, other than white space and punctuation, are in a language's script."""
    letters = re.findall(r"\w", text)
    return len(re.findall(f"[{SCRIPT[language]}]", text)) > len(letters) / 2 > 0


def test_data_run_and_model_state_the_language(made: tuple[str, Path]) -> None:
    language, folder = made
    assert json.loads((folder / "data/dataset.json").read_text())["made_by"]["language"] == language
    assert model_language(folder / "run") == model_language(folder / "run/best") == language
    assert kotha.load(folder / "run").language == language


def test_the_bundled_model_is_bangla() -> None:
    assert kotha.load().language == "bn" and own_lines(kotha.load().path, kotha.load().tokenizer, 1) is None


def test_its_texts_are_in_its_language(made: tuple[str, Path]) -> None:
    language, folder = made
    tokenizer = kotha.load(folder / "run").tokenizer
    lines = comparison_lines(folder / "run", tokenizer)
    assert [*lines[: len(AWKWARD_LINES)]] == [*AWKWARD_LINES] and len(lines) > len(AWKWARD_LINES)
    assert all(is_in(language, line) for line in lines[len(AWKWARD_LINES) :])
    pieces = own_lines(folder / "run/best", tokenizer, 20)  # the model folder alone, without its data
    assert pieces is not None and is_in(language, "".join(pieces))
    opening = own_opening(folder / "run", tokenizer)
    assert opening is not None and len(opening.split()) == 3 and is_in(language, opening)
    assert is_in(language, str(kotha.load(folder / "run").flow().title))


def test_commands_and_pages(made: tuple[str, Path], capsys: Any) -> None:
    language, folder = made
    run, tok, opening = str(folder / "run"), str(folder / "tok"), " ".join(SENTENCES[language].split()[:3])
    assert main(["generate", run, opening, "--tokens", "5"]) == 0
    assert capsys.readouterr().out.startswith(opening)
    assert main(["evaluate", run, str(folder / "corpus.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unknown"] == 0
    for words in (
        ["inside", "lens", run, "--text", opening],
        ["tokenizer", "card", tok, "--text", str(folder / "corpus.jsonl")],
    ):
        page = folder / f"{words[1]}.html"
        assert main([*words, "--html", str(page), "--language", "en"]) == 0
        assert page_of(page)[0] == "en" and set(opening) <= set(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "target", [*(pytest.param(each, marks=pytest.mark.extended) for each in ("hf", "gguf")), "web"]
)
def test_exports(made: tuple[str, Path], capsys: Any, target: str) -> None:
    language, folder = made
    out = folder / {"hf": "hf", "gguf": "model.gguf", "web": "model.html"}[target]
    for library in {"hf": ["transformers"], "gguf": ["gguf", "xllamacpp"], "web": []}[target]:
        pytest.importorskip(library, reason="the export is checked with it")
    assert main(["export", str(folder / "run"), "--to", target, "--out", str(out)]) == 0
    if target == "hf":
        assert f"\nlanguage: {language}\n" in (out / "README.md").read_text(encoding="utf-8")
        capsys.readouterr()
        assert main(["card", str(out)]) == 0
        assert f"language: {language}" in capsys.readouterr().out
    if target == "web":
        opens_in, data = page_of(out)
        assert (opens_in, data["language"]) == ("en", language) and is_in(language, data["opening"])


# -- the user's language ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "variables", "language"),
    [
        (["--language", "en"], {"KOTHA_LANGUAGE": "bn"}, "en"),
        ([], {"KOTHA_LANGUAGE": "bn", "LANG": "en_US.UTF-8"}, "bn"),
        ([], {"KOTHA_LANGUAGE": "en", "LANG": "bn_BD.UTF-8"}, "en"),
        ([], {"LC_ALL": "bn_BD.UTF-8", "LANG": "en_US.UTF-8"}, "bn"),
        ([], {"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_pages_open_in_the_users_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], variables: dict[str, str], language: str
) -> None:
    for name in ("KOTHA_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    page = tmp_path / "sheet.html"
    assert main(["plan", "--preset", "pocket", "--no-time", "--html", str(page), *words]) == 0
    assert page_of(page)[0] == language
