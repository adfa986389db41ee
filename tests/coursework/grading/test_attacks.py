"""None of the attacks gets a mark it didn't earn, loses one it earned, sees something, or stops the others."""

import json

import pytest

from coursework.grading import classroom
from coursework.grading.demo import splice
from tests.coursework.grading.attacks import ALL, ATTACKS, NAMES, RIGHT
from tests.coursework.grading.conftest import LESSON, released_notebook

HONEST = ("aaa-honest-first", "zzz-honest-last")


def write_class(folder) -> None:
    released = released_notebook(NAMES)
    everyone = dict(ATTACKS) | {name: type(next(iter(ATTACKS.values())))() for name in HONEST}
    for student, attack in everyone.items():
        answers = {name: source for name, source in (RIGHT | attack.answers).items() if source is not None}
        notebook = json.loads(splice(released, answers, extra=attack.cell))
        if attack.last:
            notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": attack.last, "outputs": []})
        path = folder / student / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.timeout(3600)
def test_every_attack_earns_what_it_earned(bwrap, tmp_path, monkeypatch):
    assert len(ATTACKS) >= 60
    monkeypatch.setenv("GRADERS_SECRET", "GRADERS_SECRET")
    course = tmp_path / "course"
    path = course / "exercises" / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(released_notebook(NAMES)))
    write_class(tmp_path / "class")
    before = {p: p.read_bytes() for p in (tmp_path / "class").rglob("*") if p.is_file()}
    results = {r.student: r for r in classroom.grade(tmp_path / "class", tmp_path / "out", seed=3, course=course,
                                                     cell_seconds=5)}  # fmt: skip
    wrong = {}
    for student in [*ATTACKS, *HONEST]:
        earned = ATTACKS[student].earns if student in ATTACKS else ALL
        result = results[student]
        got = {m.exercise for m in result.marks if m.status == "right"}
        if result.status != "graded" or got != earned:
            wrong[student] = (
                result.status,
                sorted(got),
                [m.message for m in result.marks if m.exercise in earned - got],
            )
        page = (tmp_path / "out" / "feedback" / student / f"{LESSON}.html").read_text()
        said = "".join(part.split("</pre>")[0] for part in page.split('<pre class="said">')[1:])
        assert all(c == "\n" or c == "\t" or c.isprintable() for c in page), student
        if "LEAK" in said and "raceback" not in said:
            wrong[student] = ("leak", said[:500])
    assert not wrong, json.dumps(wrong, indent=1)
    assert {p: p.read_bytes() for p in (tmp_path / "class").rglob("*") if p.is_file()} == before
