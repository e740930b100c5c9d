"""A script that types the examples of pages one after the other, as a reader does, in one session and one shell.

Its argument is a list of files and of what the reader has or does beside them, as JSON: see ``test_pages.py``. A
traceback names the lines of the page.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def type_page(page: Path, around: dict[str, Any], names: dict[str, Any]) -> None:
    names["os"] = os
    text = page.read_text(encoding="utf-8")
    exec(around["before"], names)
    processes: list[subprocess.Popen[bytes]] = []
    number = 0
    try:
        for block in BLOCK.finditer(text):
            language, example = block.groups()
            if language not in around["languages"] or (around["without"] and around["without"] in example):
                continue
            number += 1
            exec(around["before_blocks"].get(str(number), ""), names)
            for written, meant in around["meant"].items():
                example = example.replace(written, str(eval(meant, names)))
            if language == "python":
                line = text.count("\n", 0, block.start(2))
                with suppress(KeyboardInterrupt):
                    exec(compile("\n" * line + example, page, "exec"), names)
            elif language == "sql":
                for statement in filter(None, map(str.strip, example.split(";"))):
                    names["sql"](statement)
            else:
                for command in (line.removeprefix("$ ") for line in example.splitlines() if line.startswith("$ ")):
                    type_command(command, around["stays"], processes)
        exec(around["after"], names)
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def type_command(command: str, stays: list[str], processes: list[subprocess.Popen[bytes]]) -> None:
    """Type a command into a shell; one that stays is left alone when it has printed a line."""
    if command.startswith(("pip ", "make ")):
        return  # not on the machine of the tests
    if command in stays:
        process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout is not None
        print(process.stdout.readline().decode(), flush=True)
        return
    subprocess.run(command, shell=True, check=True)


if __name__ == "__main__":
    session = sys.modules["__main__"].__dict__  # where functions are defined that travel to members
    own = set(session) | {"session", "own"}
    for typed in json.loads(sys.argv[1]):
        type_page(Path(typed[0]), typed[1], session)
        for name in session.keys() - own - {"typed", "name"}:
            del session[name]
