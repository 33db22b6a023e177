"""The requests and the script of docs/serving.md work."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


def test_the_requests_of_the_guide_are_answered(models: Path, tmp_path: Path, serve: Any) -> None:
    shutil.copytree(models / "plain", tmp_path / "box")
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)).replace("\\\n", " ")
    commands = [line for line in blocks.splitlines() if line.startswith("curl") and '"model": "box"' in line]
    assert len(commands) == 3
    at = serve(tmp_path / "box")
    for command in commands:
        words = shlex.split(command, comments=True)
        address = next(word for word in words if word.startswith("http"))
        body = json.loads(words[words.index("-d") + 1])
        response = httpx.post(address.replace("http://127.0.0.1:8000", at.url), json=body, timeout=60)
        assert response.status_code == 200, response.text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="the guide asks by curl")
def test_the_guides_script_trains_a_model_and_generates(serve: Any, tmp_path: Path) -> None:
    [block] = [
        each for each in re.findall(r"^```sh\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE) if "/api/jobs" in each
    ]
    # As printed, except for slow commands; `kotha` is the tested version, whether or not it is installed.
    quick = {
        "--documents 500": "--documents 200",
        '"vocab_size": 2000': '"vocab_size": 800',
        '"minutes": 2': '"minutes": 0.2',
    }
    for printed, shorter in quick.items():
        assert block.count(printed) == 1
        block = block.replace(printed, shorter)
    ours = f'set -eu\nkotha() {{ {shlex.quote(sys.executable)} -m kotha "$@"; }}\n'
    at = serve(jobs=tmp_path / "jobs")
    script = ours + block.replace("http://127.0.0.1:8000", at.url)
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert len(result["model"]) == 12 and result["choices"][0]["text"]
