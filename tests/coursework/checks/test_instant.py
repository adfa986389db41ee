"""How a check talks in a notebook: message only, nothing on stderr, points as a plain float."""

import math
import warnings

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from coursework.checks import attention as check
from coursework.checks.engine import CheckFailed, Exercise
from coursework.checks.picture import draw, picture


def attention_scores(query, key):
    return query @ key.mT / math.sqrt(query.size(-1))


def not_scaled(query, key):
    print("a look at", tuple(query.shape))
    warnings.warn("careful", stacklevel=1)
    return query @ key.mT


def test_a_right_answer_prints_one_line_and_its_reward(capsys):
    assert check.attention_scores(attention_scores) is None
    out, err = capsys.readouterr()
    assert out.startswith("✓ 01.1 attention scores: all 4 parts pass (2 of 2 points)\n")
    assert err == ""


def test_a_wrong_answer_raises_the_message_and_shows_prints_once(capsys):
    with pytest.raises(CheckFailed) as caught:
        check.attention_scores(not_scaled)
    lines = str(caught.value).splitlines()
    assert lines[0] == "✗ 01.1 attention scores: 2 of 4 parts pass"
    assert [line.split()[0] for line in lines[1:]] == ["what", "looks", "think", "see"]
    out, err = capsys.readouterr()
    assert out == "your function printed:\na look at (2, 3, 5, 7)\n"
    assert err == ""


def test_the_result_instead_of_the_function_is_told_kindly():
    with pytest.raises(CheckFailed, match="did you pass attention_scores itself, without calling it"):
        check.attention_scores(torch.ones(2))


@pytest.mark.parametrize(
    ("namespace", "points"),
    [({"attention_scores": attention_scores}, 2.0), ({"attention_scores": not_scaled}, 1.0), ({}, 0.0),
     ({"attention_scores": None}, 0.0), ({"attention_scores": lambda q, k: exit(1)}, 0.0)],
)  # fmt: skip
def test_the_graded_cell_returns_points_and_never_raises(namespace, points, capsys):
    got = check.attention_scores.grade(namespace)
    assert type(got) is float
    assert got == points
    out, err = capsys.readouterr()
    assert out.startswith(("✓", "✗", "○"))
    assert err == ""


def test_the_graded_cell_survives_a_patched_torch(monkeypatch, capsys):
    def broken(*args, **kwargs):
        raise RuntimeError("patched")

    monkeypatch.setattr(torch.Tensor, "double", broken)
    assert check.attention_scores.grade({"attention_scores": attention_scores}) == 0.0
    assert "the check could not run" in capsys.readouterr().out


def test_a_notebook_shows_the_message_without_a_traceback():
    """A real kernel: the error output is our lines and nothing else, and stderr stays empty."""
    wrong = (
        "from coursework.checks import attention as check\n"
        "def attention_scores(query, key):\n    return query @ key.mT\n"
        "check.attention_scores(attention_scores)"
    )
    cells = [
        nbformat.v4.new_code_cell(wrong),
        nbformat.v4.new_code_cell("check.attention_scores.grade(globals())"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=120).execute()
    outputs = notebook.cells[0].outputs
    errors = [output for output in outputs if output.output_type == "error"]
    assert len(errors) == 1
    shown = "\n".join(errors[0].traceback)
    assert shown.startswith("✗ 01.1 attention scores")
    assert "Traceback" not in shown
    assert "coursework/" not in shown
    pictures = [output for output in outputs if output.output_type == "display_data"]
    assert len(pictures) == 1
    assert 'alt="' in pictures[0].data["text/html"]
    graded = notebook.cells[1].outputs
    assert [output.data["text/plain"] for output in graded if output.output_type == "execute_result"] == ["1.0"]
    assert not [o for o in (*outputs, *graded) if o.output_type == "stream" and o.name == "stderr"]


def test_pictures_survive_infinities_and_stay_silent_outside_a_notebook(capsys):
    yours = torch.tensor([[0.0, -math.inf], [1.0, math.nan]])
    titles = [ax.get_title() for ax in picture(yours, torch.zeros(2, 2)).axes]
    assert [title for title in titles if title] == ["yours", "expected", "difference"]
    draw(yours, torch.zeros(2, 2))
    draw(torch.ones(3), torch.ones(3))
    assert capsys.readouterr() == ("", "")


def test_a_gpu_is_asked_only_what_is_right_on_the_cpu(asked_on, capsys):
    """An index out of range would end CUDA for the whole kernel, and other draws would hide a mistake's name."""

    def at_a_fixed_place(query, key):
        return query[..., 99]

    with pytest.raises(CheckFailed, match="IndexError"):
        check.attention_scores(at_a_fixed_place, device="cuda")
    assert asked_on == ["cpu"]
    check.attention_scores(lambda q, k: q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, device="cuda")
    assert asked_on == ["cpu", "cpu", "cuda"]
    assert "all" in capsys.readouterr().out


@pytest.fixture
def asked_on(monkeypatch):
    """The devices that verdicts were asked on; all of them are answered on the CPU."""
    devices, verdict = [], Exercise.verdict

    def recorded(self, run, *, device="cpu", **rest):
        devices.append(device)
        return verdict(self, run, **rest)

    monkeypatch.setattr(Exercise, "verdict", recorded)
    return devices


def test_a_tensor_made_on_another_device_is_told_in_one_sentence():
    def elsewhere(query, key):
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        )

    with pytest.raises(CheckFailed, match=r"write device=x.device, x an argument, in your line  raise RuntimeError"):
        check.attention_scores(elsewhere)


def test_a_reward_that_fails_takes_nothing_away(monkeypatch, capsys):
    def reward(function):
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(check.attention_scores, "_reward", reward)
    check.attention_scores(attention_scores)
    out = capsys.readouterr().out
    assert out.startswith("✓ 01.1 attention scores: all 4 parts pass")
    assert "could not be shown with your function: RecursionError: maximum recursion depth exceeded" in out
