"""Control characters are escaped in terminal output; a pipe receives every character unchanged."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from kotha.cli.control_characters import visible

HOSTILE = "\x1b]0;owned\x07\x1b[2J\rকথা\x9b31m\u202eমালা"
# All kinds of command output: text, a file name, markup and a table.
PRINTS = f"""
import sys
from kotha.cli.control_characters import visible_controls
text = {HOSTILE!r}
with visible_controls():
    from kotha.cli.terminal import notes, print_parts, results
    from kotha.report.table import Table
    print(text)
    print(text, file=sys.stderr)
    sys.stdout.writelines([text, "\\n"])
    results().print(text, markup=False)
    print_parts(Table(text, ["name"], [[text]]))
    notes().print(text, style="bold")
"""


def on_a_terminal(*command: str) -> str:
    """Return the output of a program on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    written = b""
    while True:
        try:
            some = os.read(ours, 1 << 16)
        except OSError:  # the other end of the terminal is closed
            break
        if not some:
            break
        written += some
    os.close(ours)
    process.wait()
    return written.decode()


@pytest.mark.parametrize(
    "text", ["কথা\tমালা\n", "র‍্যা ক্‌ষ", "english [bold]", "\u200e\u200f"], ids=["line", "joiners", "markup", "marks"]
)
def test_joiners_and_line_ends_are_kept(text: str) -> None:
    assert visible(text) == text


def test_control_characters_are_visible_on_a_terminal() -> None:
    shown = on_a_terminal(sys.executable, "-c", PRINTS).replace("\r\n", "\n")
    for hostile in ("\x1b]", "\x1b[2J", "\x07", "\r", "\x9b", "\u202e"):
        assert hostile not in shown
    assert shown.count("␛]0;owned␇␛[2J␍কথা<U+009B>31m<U+202E>মালা") == 3, "printed"
    assert shown.count("␛]0;owned␛[2Jকথা<U+009B>31m<U+202E>মালা") == 3, "by rich, which drops bells itself"
    assert "\x1b[1m" in shown, "our own colours are still there"


def test_pipes_receive_unchanged_output() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, check=True)
    assert done.stdout.decode().count(HOSTILE) == 2
    assert done.stdout.count(b"\x1b[2J") == 5
    assert HOSTILE in done.stderr.decode()


def test_a_hostile_file_name_in_an_error(tmp_path: Path) -> None:
    name = str(tmp_path / "a\x1b[2Jb.txt")
    command = [sys.executable, "-m", "kotha", "tokenizer", "view", name, "কথা"]
    shown = on_a_terminal(*command)
    assert "␛[2Jb.txt" in shown and "\x1b[2J" not in shown
    done = subprocess.run(command, capture_output=True, check=False)
    assert b"\x1b[2Jb.txt" in done.stderr


def test_json_keeps_control_characters(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"text": "কথা \x1b[2J"}), encoding="utf-8")
    command = [sys.executable, "-m", "kotha", "corpus", "inspect", str(file), "--json"]
    assert "\x1b[2J" not in on_a_terminal(*command)
    assert json.loads(subprocess.check_output(command))["documents"] == 1
