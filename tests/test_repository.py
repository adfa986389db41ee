"""What must agree between files that no program reads together."""

import json
import re
import shutil
import subprocess
import time
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from coursework import build, checks, lessons

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = ["setup", "lab", "test", "test-long", "lint", "lessons", "release", "grade", "bench", "site"]
CONDA_NAMES = {"pytorch": "torch"}


def wanted(*extras: str) -> dict[str, Requirement]:
    lines = PROJECT["dependencies"] + [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    requirements = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): r for r in requirements if r.name != PROJECT["name"]}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


# ---------------------------------------------------------------- packages


def test_environment_names_what_pyproject_names():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    plain = [item for item in environment["dependencies"] if isinstance(item, str)]
    by_pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert by_pip[-1] == '-e ".[course]"'
    lines = [line for line in [*plain, *by_pip[:-1]] if not re.match(r"(python|pip)\b", line)]
    found = {}
    for line in lines:
        requirement = Requirement(line)
        found[canonicalize_name(CONDA_NAMES.get(requirement.name, requirement.name))] = requirement.specifier
    assert found == {name: r.specifier for name, r in wanted("colab", "course").items()}
    assert f"python{PROJECT['requires-python']}" in plain


def test_every_dependency_has_its_reason():
    text = (ROOT / "pyproject.toml").read_text()
    for name, requirement in wanted("colab", "course", "dev").items():
        line = next(line for line in text.split("\n") if line.strip().startswith(f'"{requirement.name}'))
        assert re.search(r"#\s+\w+", line), f"{name} has no reason beside it"


def test_constraints_pin_every_named_package_within_its_bounds():
    lines = (ROOT / "constraints.txt").read_text().split("\n")
    pins = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, _, exact = line.partition("==")
            assert re.fullmatch(r"[\d.]+(post\d+|b\d+|rc\d+)?", exact), f"{line}: an exact version without a local part"
            pins[canonicalize_name(name)] = exact
    for name, requirement in wanted("colab", "course", "dev").items():
        assert requirement.specifier.contains(pins[name], prereleases=True), f"{name}: {pins[name]} is out of bounds"


# ---------------------------------------------------------------- commands and continuous integration


def test_make_has_its_targets_and_they_set_up_first():
    text = (ROOT / "Makefile").read_text()
    for target in TARGETS:
        assert re.search(rf"^{target}: \$\(READY\)", text, re.MULTILINE), target


FAKE_PYTHON = """#!/bin/sh
# A Python of the version {verdict}; the environments that it makes log what is asked of them.
case "$1 $2" in
  "-m venv") mkdir -p .venv/bin
    printf '#!/bin/sh\\necho "$@" >> asked.log\\n' > .venv/bin/python && chmod +x .venv/bin/python ;;
  *) exit {code} ;;
esac
"""


@pytest.fixture
def fresh_folder(tmp_path):
    """make(**variables) in a folder without .venv, where python3 is too old and python3.12 is not."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "mkdir", "chmod", "touch", "rm", "id", "make", "printf"):
        (programs / name).symlink_to(shutil.which(name))
    for name, code in (("python3", 1), ("python3.12", 0)):
        (programs / name).write_text(FAKE_PYTHON.format(verdict="old" if code else "new", code=code))
        (programs / name).chmod(0o755)

    def make(*arguments):
        environment = {"PATH": str(programs)}
        return subprocess.run(["make", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)

    make.folder = tmp_path
    return make


def test_make_setup_takes_the_first_python_that_is_new_enough(fresh_folder):
    done = fresh_folder("setup")
    assert done.returncode == 0, done.stderr
    assert "making .venv with python3.12" in done.stdout
    torch_first, course = (fresh_folder.folder / "asked.log").read_text().splitlines()
    assert torch_first.endswith("-c constraints.txt torch")
    assert course.endswith("-c constraints.txt torch -e .[course,dev]")


def test_make_setup_does_nothing_the_second_time(fresh_folder):
    fresh_folder("setup")
    (fresh_folder.folder / "asked.log").unlink()
    began = time.perf_counter()
    assert fresh_folder("setup").returncode == 0
    assert time.perf_counter() - began < 1
    assert not (fresh_folder.folder / "asked.log").exists()


def test_make_setup_takes_another_index_and_no_pins(fresh_folder):
    fresh_folder("setup", "TORCH_INDEX=https://example.org/cpu", "PINS=", "TORCH=torch==2.6.*")
    torch_first, course = (fresh_folder.folder / "asked.log").read_text().splitlines()
    assert torch_first.endswith("--index-url https://example.org/cpu torch==2.6.*")
    assert course.endswith("torch==2.6.* -e .[course,dev]")
    assert "constraints" not in torch_first + course


def test_make_setup_without_a_python_says_what_to_do(fresh_folder):
    (fresh_folder.folder / "programs" / "python3.12").unlink()
    done = fresh_folder("setup")
    assert done.returncode != 0
    for hint in ("No Python 3.11", "apt-get install python3", "brew install", "environment.yml"):
        assert hint in done.stdout
    assert not (fresh_folder.folder / ".venv").exists()


def test_continuous_integration_runs_the_same_commands():
    assert re.findall(r"^make .*", (ROOT / ".ci/run").read_text(), re.MULTILINE) == ["make test", "make test-long"]
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    steps = {name: [step.get("run", "") for step in job["steps"]] for name, job in workflow["jobs"].items()}
    assert ".ci/run" in steps["test"]
    assert ".ci/run" in steps["weekly"]
    torches = [entry["torch"] for entry in workflow["jobs"]["test"]["strategy"]["matrix"]["include"]]
    oldest = next(iter(wanted()["torch"].specifier)).version
    assert f"torch=={oldest}.*" in torches, "the oldest supported torch is tested"


def test_nothing_names_the_machine_it_was_made_on():
    private = re.compile(r"/(home|Users|root|work|tmp)/\w")
    allowed = ("Makefile", ".ci/run", "attacks.py", "test_sandbox.py")  # attackers name places of any system
    allowed += ("test.yml",)  # where pytest leaves pictures on GitHub's machines
    for path in tracked("*.py", "*.md", "*.ipynb", "*.yml", "*.toml", "*.json", "*.txt"):
        if path.name not in allowed and path != Path(__file__):
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                assert not private.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"


def test_licences_say_what_they_cover():
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert "https://creativecommons.org/licenses/by/4.0/" in (ROOT / "LICENSE-TEXT").read_text()
    assert PROJECT["license"] == "MIT AND CC-BY-4.0"


# ---------------------------------------------------------------- notebooks


def test_notebooks_are_in_normal_form():
    off = build.normalise([where.path for where in build.places()], check=True)
    assert off == [], "python -m coursework.build brings them to it"


def test_lessons_are_not_stale():
    assert lessons.stale() == [], "make lessons"


def test_exercises_are_what_the_solutions_release():
    """Runs nbgrader; notebooks and checks must agree, and nothing may leak."""
    assert build.release(check=True) == [], "make release"


def test_every_assignment_has_checks_a_lesson_and_a_release():
    kinds = {
        kind: {p.unit for p in build.places() if p.kind == kind} for kind in ("notebooks", "solutions", "exercises")
    }
    assert kinds["solutions"] == kinds["exercises"]
    assert kinds["solutions"] <= {checks.unit(name).LESSON for name in checks.UNITS}
    assert kinds["solutions"] <= kinds["notebooks"]


def test_measured_figures_are_within_the_promise():
    table = json.loads((ROOT / "notebooks/measured.json").read_text())
    assert set(table) == {p.unit for p in build.places() if p.kind == "notebooks"}
    for unit, figures in table.items():
        assert figures["seconds"] <= 180, f"{unit} takes {figures['seconds']} s"
        assert figures["peak_mib"] <= 4096, f"{unit} takes {figures['peak_mib']} MiB"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", [p for p in build.places() if p.kind == "notebooks"], ids=lambda p: p.unit)
def test_lesson_runs(where):
    """No cell fails, none warns, and the promise on time and memory holds on this machine."""
    _, figures = lessons.execute(ROOT / where.path)
    assert figures["seconds"] <= 180
    assert figures["peak_mib"] <= 4096
