"""The wheel, installed into an empty environment: what a newcomer types first, without the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import secateur

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
UV = (sys.executable, "-m", "uv", "--no-python-downloads")


@cache
def pyenv_variables() -> dict[str, str]:
    """pyenv's commands for the versions it has fail until the versions are named."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return {}
    versions = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True, check=True).stdout.split()
    return {"PYENV_VERSION": ":".join(versions)}


def run(*command: str | Path, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SECATEUR"))}
    environment |= {"SECATEUR_HOME": str(folder / "home"), **pyenv_variables()}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, folder=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13", "3.14"])
def environment(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """A folder with an environment ``venv`` that has the wheel with the extra ``cli``, and nothing else of ours."""
    folder = tmp_path_factory.mktemp("newcomer")
    python = run(*UV, "python", "find", request.param, folder=folder, check=False).stdout.strip()
    if not python:
        pytest.skip(f"Python {request.param} is not installed")
    run(*UV, "venv", "--python", python, folder / "venv", folder=folder)
    run(
        *(*UV, "pip", "install", "--python", folder / "venv" / "bin" / "python"),
        *("--constraint", ROOT / "constraints.txt", f"{wheel}[cli]"),
        folder=folder,
    )
    yield folder
    run(folder / "venv" / "bin" / "secateur", "stop", folder=folder, check=False)


def test_it_has_what_a_user_imports(environment: Path) -> None:
    code = """
import importlib.metadata, importlib.util, pathlib, sys
import secateur
assert "ray" not in sys.modules and "pyspark" not in sys.modules
assert importlib.util.find_spec("pyspark_secateur") is not None
assert not importlib.util.find_spec("tests") and not importlib.util.find_spec("benchmarks")
folder = pathlib.Path(secateur.__file__).parent
assert folder.is_relative_to(sys.prefix) and (folder / "py.typed").exists()
assert importlib.metadata.version("secateur") == secateur.__version__
try:
    import secateur.http
    secateur.http.HttpClient
except ModuleNotFoundError as error:
    assert 'pip install "secateur[http]"' in str(error), error
else:
    raise AssertionError("httpx is installed, though it is another extra")
print(secateur.__version__)
"""
    done = run(environment / "venv" / "bin" / "python", "-W", "error", "-c", code, folder=environment)
    assert done.stdout.strip() == secateur.__version__


def test_the_first_example_of_the_readme_prints_what_the_readme_says(environment: Path) -> None:
    example, printed = (
        re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)[0]
        for language in ("python", "text")
    )
    done = run(environment / "venv" / "bin" / "python", "-W", "error", "-c", example, folder=environment)
    assert (done.stdout, done.stderr) == (printed, "")


def test_a_csv_file_of_ones_own_in_three_commands(environment: Path) -> None:
    """The commands of the README, on members without Ray, which is another extra."""
    (environment / "orders.csv").write_text("customer_id,order_id,amount\nC1,1,2.50\nC2,2,7.25\nC2,3,1.00\n")
    (commands,) = (
        block
        for block in re.findall(r"^```console\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
        if "secateur load" in block
    )
    start, load, ask = (line.removeprefix("$ ") for line in commands.splitlines())
    path = f'PATH="{environment / "venv" / "bin"}:$PATH"'
    run("sh", "-c", f"{path} {start} --runtime embedded", folder=environment)
    run("sh", "-c", f"{path} {load}", folder=environment)
    answer = run("sh", "-c", f"{path} {ask} --format csv", folder=environment).stdout.split()
    assert answer[0] == "customer_id,order_id,amount"
    assert sorted(answer[1:]) == ["C2,2,7.25", "C2,3,1.00"]
