"""The doctor on sick machines: each illness is named, with what to do."""

import shutil
import subprocess
import sys
from collections import namedtuple
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest
import torch

from coursework import doctor


def only(findings):
    (finding,) = findings
    return finding


def test_this_machine_passes():
    wrong = [str(finding) for finding in doctor.examine() if finding.level == "wrong"]
    assert wrong == []


def test_whatever_is_not_well_says_what_to_do():
    for finding in doctor.examine():
        assert finding.level == "ok" or finding.do, finding


def test_old_python(monkeypatch):
    Version = namedtuple("Version", "major minor micro releaselevel serial")
    monkeypatch.setattr(sys, "version_info", Version(3, 10, 13, "final", 0))
    finding = only(doctor._python())
    assert finding.level == "wrong"
    assert "3.11" in finding.do


@pytest.mark.parametrize(("version", "level"), [("2.5.1", "wrong"), ("2.6.0", "note"), ("2.10.0+cu128", "ok")])
def test_torch_versions(monkeypatch, version, level):
    monkeypatch.setattr(torch, "__version__", version)
    assert only(doctor._torch()).level == level


def test_missing_and_old_packages(monkeypatch):
    def version(name):
        if name == "bertviz":
            raise PackageNotFoundError(name)
        return {"jupyterlab": "3.6"}.get(name, real(name))

    real = doctor.version
    monkeypatch.setattr(doctor, "version", version)
    finding = only(doctor._packages())
    assert finding.level == "wrong"
    assert "bertviz is missing" in finding.says
    assert "3.6 is here" in finding.says


@pytest.mark.parametrize(
    ("capability", "says"), [((7, 5), "fp16 with loss scaling"), ((9, 0), "bf16"), ((9, 0), "sm90"), ((6, 1), "sm61")]
)
def test_gpu_precision(monkeypatch, capability, says):
    card = SimpleNamespace(name="Some card", total_memory=16 * 2**30, major=capability[0], minor=capability[1])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda i: card)
    finding = only(doctor._gpu())
    assert says in finding.says
    assert "16 GiB" in finding.says
    assert ("no flash" in finding.says) == (capability < (8, 0))
    assert finding.level == ("ok" if capability >= (7, 0) else "note")


def test_gpu_that_torch_cannot_use(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/" + name)
    assert "cannot use the GPU" in only(doctor._gpu()).says


@pytest.mark.parametrize(
    ("platform", "program", "code", "says"),
    [
        ("darwin", None, 0, "Linux only"),
        ("linux", None, 0, "no bubblewrap"),
        ("linux", "/usr/bin/bwrap", 1, "may not make a sandbox: no namespaces"),
        ("linux", "/usr/bin/bwrap", 0, "works"),
    ],
)
def test_sandbox(monkeypatch, platform, program, code, says):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(shutil, "which", lambda name: program)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: SimpleNamespace(returncode=code, stderr="no namespaces"))
    assert says in only(doctor._sandbox()).says


def test_memory_and_disk(monkeypatch):
    import psutil

    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2**30, total=8 * 2**30))
    assert only(doctor._memory()).level == "note"
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**30))
    assert only(doctor._disk()).level == "note"


def test_jupyter_without_nbgrader(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(doctor, "_server_extensions", dict)
    said = " ".join(finding.says for finding in doctor._jupyter())
    assert "extension for JupyterLab is not installed" in said
    assert "no Validate" in said
    assert "no kernel" in said


def test_weights(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_MINIMAL_CACHE", str(tmp_path))
    assert only(doctor._weights()).level == "note"
    (tmp_path / "minilm").mkdir()
    (tmp_path / "minilm" / "vocab.txt").touch()
    assert "minilm" in only(doctor._weights()).says


def test_exit_code_and_words(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Finding("wrong", "disk", "is full", "empty it")])
    assert doctor.main() == 1
    assert capsys.readouterr().out.startswith("✗ disk        is full\n              → empty it\n")
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Finding("note", "GPU", "none", "")])
    assert doctor.main() == 0
