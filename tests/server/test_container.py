"""The Dockerfile, as far as it can be tested without Docker, and the tables and commands in docs/serving.md."""

import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from dataclasses import fields
from pathlib import Path

import httpx
import pytest
from tests.loopback import http
from tests.server.conftest import Address, started

from kotha.cli.main import main
from kotha.server.app import make_app
from kotha.server.settings import Limits, ServeSettings

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
LIMIT = re.compile(r"^\| `(\w+)` \| ([\d,]+) \|", re.MULTILINE)


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions (name and arguments), with continuation lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    lines = plain.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def last_stage() -> dict[str, str]:
    """The instructions of the last stage; the last instruction of each kind is used."""
    found: dict[str, str] = {}
    for name, rest in instructions():
        found = {"FROM": rest} if name == "FROM" else {**found, name: rest}
    return found


def test_it_is_built_on_debian_in_two_stages_and_not_run_by_root() -> None:
    assert [rest for name, rest in instructions() if name == "FROM"] == [
        "debian:stable-slim AS builder",
        "debian:stable-slim",
    ]
    image = last_stage()
    assert image["USER"] == "kotha" and "nologin" in image["RUN"] and "useradd --system" in image["RUN"]
    assert image["VOLUME"] == '["/jobs"]' and image["EXPOSE"] == str(ServeSettings().port)
    assert "ENTRYPOINT" in image and "CMD" not in image
    for name, rest in instructions():
        if "pip install" in rest:
            assert rest.count("--constraint constraints.txt") == rest.count("pip install"), "only the tested versions"
        assert "://" not in rest or "127.0.0.1" in rest, f"{name}: no host is named"


def test_its_command_line_is_valid(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = json.loads(last_stage()["ENTRYPOINT"])
    assert program == "/opt/kotha/bin/kotha" and words[0] == "serve"
    assert main(["serve", "--help"]) == 0
    offered = capsys.readouterr().out
    assert [word for word in words if word.startswith("--") and word not in offered] == []
    key = words[words.index("--key-file") + 1]
    assert f":{key}:ro" in GUIDE and f":{key}:ro" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert main(words) != 0 and key in capsys.readouterr().err, "it does not start without its key"


def test_its_health_check_passes_with_a_server_and_fails_without(models: Path) -> None:
    program = json.loads(last_stage()["HEALTHCHECK"].split("CMD ")[1])
    assert program[:2] == ["/opt/kotha/bin/python", "-c"]
    app = make_app([str(models / "plain")], ServeSettings(host="0.0.0.0", key="a-key-of-sixteen-letters"), device="cpu")
    for url in started(app, "0.0.0.0"):
        port = str(httpx.URL(url).port)
        asked = program[2].replace(":8000/", f":{port}/")
        assert asked != program[2]
        assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
    gone = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False)
    assert gone.returncode != 0


def test_the_wheel_builds_from_the_files_of_the_docker_context(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the build backend, which the tests' environment has")
    seen = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY" and not rest.startswith("--from")]
    assert {name for names in copied for name in names} == set(seen)
    source = tmp_path / "source"
    source.mkdir()
    for name in seen:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    (wheel_command,) = (rest for name, rest in instructions() if name == "RUN" and "pip wheel" in rest)
    words = shlex.split(
        wheel_command.replace("/opt/build/bin/pip", "-m pip").replace("/wheel", str(tmp_path / "wheel"))
    )
    subprocess.run([sys.executable, *words], cwd=source, check=True, capture_output=True)
    (wheel,) = (tmp_path / "wheel").glob("kotha-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        about = next(opened.read(name).decode() for name in names if name.endswith("METADATA"))
    assert {"kotha/server/app.py", "kotha/storage/bundled/model.safetensors", "kotha/generation/native.c"} <= set(names)
    assert "Provides-Extra: serve" in about


def test_the_limits_of_the_guide_are_the_servers() -> None:
    written = {name: float(value.replace(",", "")) for name, value in LIMIT.findall(GUIDE)}
    assert written == {each.name: getattr(Limits(), each.name) for each in fields(Limits)}


def test_the_metrics_of_the_guide_are_the_servers(models: Path) -> None:
    named = set(re.findall(r"^\| `(kotha_\w+)` \|", GUIDE, re.MULTILINE))
    for url in started(make_app([str(models / "plain")], ServeSettings(), device="cpu")):
        assert http.get(f"{url}/ready", timeout=60).is_success
        result = http.get(f"{url}/metrics").text
    kinds = set(re.findall(r"^# TYPE (kotha_\w+) (?:counter|gauge|histogram)$", result, re.MULTILINE))
    assert named == {kind for kind in kinds if not kind.endswith("_created")}


def test_the_commands_of_the_guide_have_flags_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.partition("#")[0] for line in GUIDE.splitlines() if re.match(r"kotha \w", line)]
    assert len(lines) >= 6
    for line in lines:
        command = shlex.split(line)
        named = itertools.takewhile(lambda word: not word.startswith("--"), command[1:])
        assert main([*named, "--help"]) == 0
        offered = capsys.readouterr().out
        assert [word for word in command if word.startswith("--") and word not in offered] == [], line


def test_the_guide_names_every_route(address: Address) -> None:
    for path in address.app.openapi()["paths"]:
        *folders, last = [part for part in path.split("/") if part and not part.startswith("{")]
        assert re.search(rf"\b{re.escape(last)}\b", GUIDE), path
        assert not folders or "/".join(folders) in GUIDE, path
