"""Dependencies are pinned, approved and, where this has been tested, locked by hash."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from scripts import audit, setup

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "locks").glob("*.txt"))


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(path: Path) -> dict[str, str]:
    lines = [line.split(" ")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return {plain(line.split("==")[0]): line.split("==")[1] for line in lines if "==" in line}


@pytest.mark.parametrize("path", LOCKS, ids=[path.stem for path in LOCKS])
def test_a_lock_has_the_pinned_versions_and_a_hash_of_each(path: Path) -> None:
    pinned = pins(ROOT / "constraints.txt")
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+ --hash=sha256:[0-9a-f]{64}", line), line
    assert {name: version for name, version in pins(path).items() if pinned[name] != version} == {}


def wanted(extra: str, project: dict[str, Any]) -> set[str]:
    """Return the packages that an extra requires by name, including its other extras."""
    found = set()
    for each in project["optional-dependencies"][extra]:
        if inner := re.match(r"kotha\[([a-z,]+)\]", each):
            found |= {name for part in inner[1].split(",") for name in wanted(part, project)}
        else:
            found.add(plain(re.split(r"[\s<>=!~;\[]", each)[0]))
    return found


@pytest.mark.parametrize(("level", "extra"), [("demo", "serve"), ("dev", "dev")])
def test_a_lock_forgets_nothing_that_is_asked_for(level: str, extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    here = [each for each in project["dependencies"] if "sys_platform == 'win32'" not in each]  # locked for Linux
    asked = wanted(extra, project) | {plain(re.split(r"[\s<>=!~;\[]", each)[0]) for each in here}
    for path in LOCKS:
        if path.stem.endswith(f"-{level}"):
            assert asked <= set(pins(path)), path.name


def test_a_locked_install_checks_every_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(setup, "run", lambda *words: ran.append(words))
    monkeypatch.setattr(setup, "VENV", tmp_path)
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("")
    lock = setup.lock_of("dev")
    lock.parent.mkdir()
    lock.write_text("")
    setup.install_packages("dev", locked=True)
    # Only packages in the lock file are installed: no other dependencies, and no build requirements of our package.
    assert "--require-hashes" in ran[0] and all("--no-deps" in words for words in ran) and len(ran) == 2
    assert "--no-build-isolation" in ran[1]


def test_a_file_that_is_not_the_locked_one_is_refused(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "made-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("made-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: made\nVersion: 1.0\n")
        wheel.writestr("made-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("made-1.0.dist-info/RECORD", "")
    (tmp_path / "lock.txt").write_text(f"made==1.0 --hash=sha256:{'0' * 64}\n")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "--target", str(tmp_path / "to")]
    words = [*pip, "--no-index", "--find-links", str(tmp_path), "--requirement", str(tmp_path / "lock.txt")]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode and "DO NOT MATCH THE HASHES" in ran.stderr
    assert not (tmp_path / "to").exists()


def answering(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]) -> None:
    result = json.dumps({"dependencies": rows})
    monkeypatch.setattr(audit.subprocess, "run", lambda words, **_: subprocess.CompletedProcess(words, 0, result, ""))


def test_an_audit_that_was_not_answered_is_not_clean(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bill = tmp_path / "sbom.json"
    names = ["kotha", "torch", "numpy"]
    bill.write_text(json.dumps({"components": [{"name": name, "version": "1.0+cpu"} for name in names]}))
    good = {"name": "torch", "version": "1.0", "vulns": []}
    answering(monkeypatch, [good, {"name": "numpy", "skip_reason": "not found"}])
    assert audit.known(tmp_path, bill, tmp_path / "known.json") == 3
    assert "returned results for 1 of 2" in capsys.readouterr().out and not (tmp_path / "known.json").exists()
    answering(monkeypatch, [good, {"name": "numpy", "version": "1.0", "vulns": [{"id": "HOLE-1"}]}])
    assert audit.known(tmp_path, bill, tmp_path / "known.json") == 1
    assert "numpy 1.0: HOLE-1" in capsys.readouterr().out
    answering(monkeypatch, [good, {**good, "name": "numpy"}])
    assert audit.known(tmp_path, bill, tmp_path / "known.json") == 0


@pytest.mark.parametrize(
    ("affected", "version", "is_so"),
    [
        ({"versions": ["1.0", "1.1"]}, "1.1", True),
        ({"versions": ["1.0", "1.1"]}, "1.2", False),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}]}, "9.9", True),  # no fix yet
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "1.2"}, {"fixed": "1.10"}]}]}, "1.9", True),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "1.2"}, {"fixed": "1.10"}]}]}, "1.10", False),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "1.2"}, {"fixed": "1.10"}]}]}, "1.1", False),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"last_affected": "2"}]}]}, "2", True),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"last_affected": "2"}]}]}, "2.1", False),
        ({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, "1.0", False),
    ],
)
def test_a_copy_of_the_advisories_is_asked_where_there_is_no_network(
    affected: dict[str, Any], version: str, is_so: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bill, entry = tmp_path / "sbom.json", tmp_path / "vulns" / "some-thing" / "HOLE-1.yaml"
    bill.write_text(json.dumps({"components": [{"name": "Some_Thing", "version": version}]}))
    assert audit.known_offline(bill, tmp_path, tmp_path / "known.json") == 3, "no database is no clean bill"
    entry.parent.mkdir(parents=True)
    result = {"id": "HOLE-1", "affected": [{"package": {"name": "some-thing"}, **affected}]}
    entry.write_text(json.dumps(result))  # JSON is YAML
    assert audit.known_offline(bill, tmp_path, tmp_path / "known.json") == int(is_so)
    assert ("Some_Thing" in capsys.readouterr().out) == is_so
    entry.write_text(json.dumps({**result, "withdrawn": "2024-01-01"}))
    assert audit.known_offline(bill, tmp_path, tmp_path / "known.json") == 3
