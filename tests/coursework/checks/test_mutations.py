"""Wrong answers that no list names: each is refused, and the "what" line is about the step that was changed."""

import pytest

from coursework import checks
from coursework.checks.engine import _gap, run_here, run_variant

from .mutants import mutants

# Where the check points at another step than the changed one, and why that is as good as it gets.
ELSEWHERE = {
    "math.sqrt(query.size(3)) / scores": "no scale any more: what the scores were is lost",
    "math.sqrt(size) / scores": "no scale any more: what the scores were is lost",
    ".mean(-1)": "a mean of d products is their sum with another scale",
    "'bhid,bhjd->bhij', value, key": "scores from the values: the weighted sum is not linear in them any more",
    "'bhid,bhjd->bhij', query, value": "scores from the values: the weighted sum is not linear in them any more",
    "scores.exp() / scores.sum": "0 / 0 with a single token, which is asked before the softmax is",
}
# The output projection is told from the rest by changing it alone: what uses its tensors elsewhere changes too.
ELSEWHERE |= {
    f"{role} = hidden @ weights['{weight}.weight'].T + weights['{bias}.bias']": "the output's tensors used inside"
    for role in ("query", "key", "value")
    for weight, bias in ((role, "output"), ("output", role))
}

# Words of messages about errors, wrong shapes and wrong types: they say where to look.
ERRORS = ("raises", "returns", "expected a", "of the result stands", "did not finish")
# Units whose check points elsewhere for some changed lines: {unit: {a piece of the line: why}}.
ELSEWHERE_OF = {
    "attention": ELSEWHERE,
    "mlm": {
        "random.random() <= probability": "the same: a draw is never exactly 0.15",
        "draw <= 0.8": "the same: a draw is never exactly 0.8",
        "draw <= 0.9": "the same: a draw is never exactly 0.9",
        "draw > 0.9": "the other 10 % are swapped, and as many",
        "draw >= 0.9": "the other 10 % are swapped, and as many",
    },
    "nsp": {
        "random.random() <= 0.5": "the same: a draw is never exactly a half",
        "random.random() > 0.5": "the other half, and as many",
        "random.random() >= 0.5": "the other half, and as many",
        "room = max(target - _tokens(a), 1)": "the same",
        "room = max(2, target - _tokens(a))": "differs only where a sentence of one token meets a room for one",
    },
    "long_documents": {
        "if stride < 0 or": "the same: range itself refuses a step of 0, with a ValueError too",
    },
    "variants": {
        "if label > -100:": "the same: no label is below −100",
        "total = stack": "what was counted before is lost, the vocabulary with it",
        "total = head": "likewise",
        "return widen": "likewise",
        "total = 2 * embedding + head": "likewise",
        "total = places + 2 * embedding + head": "likewise",
        "2 / embedding": "fractions of a parameter, which every difference shows",
    },
}

# How many mutants have their step told, at least: falls when a line loses its mark. 1 where nothing else is said.
LEAST = {
    "count_words": 0,
    "attention_scores": 8, "mask_to_bias": 8, "scaled_dot_product_attention": 25, "split_heads": 2, "merge_heads": 1,
    "multi_head_attention": 45, "causal_mask": 10,
    "layer_norm": 35, "build_inputs": 15, "pad_batch": 2, "embeddings": 30,
    "split_words": 0, "pair_scores": 8, "train": 6, "encode_word": 12, "decode": 3, "truncate_pair": 12,
    "translate_names": 0,  # names are text, which no mutant changes
    "select_positions": 3, "mask_tokens": 8, "mlm_head": 50, "mlm_loss": 20, "gather_positions": 0,
    "gather": 8, "nsp_head": 30, "nsp_loss": 8, "pretraining_loss": 15,
    "feed_forward": 20, "encoder_layer": 40, "Encoder": 4, "pooler": 25, "count_parameters": 50, "load_weights": 0,
    "bert": 25,
    "classification_head": 30, "evaluate": 60, "fine_tune": 12, "predict": 9,
    "head_tail": 20, "windows": 15, "pool": 8, "predict_documents": 6,
}  # fmt: skip

EVERY = [(unit, exercise) for unit in checks.UNITS for exercise in checks.exercises(unit)]


def run_in_time(name, function):
    """As run_variant, with a student's time limit: a loop may never end when one sign in it is changed."""

    def run(calls, device):
        return run_here({name: function})([call | {"modules": []} for call in calls], device)

    return run


QUICK = ("start_here", "attention", "wordpiece")  # in `make test`; the others take minutes together


@pytest.mark.parametrize(
    ("unit", "exercise"),
    [pytest.param(u, e, id=e.name, marks=[] if u in QUICK else pytest.mark.long) for u, e in EVERY],
)
def test_every_mutant_is_refused_with_the_step_that_is_off(unit, exercise, monkeypatch):
    cases = exercise.questions(11)
    plain = [i for i, case in enumerate(cases) if not case.random]
    expected = exercise._expected(cases)
    monkeypatch.setattr(exercise, "mistakes", {})  # "what" comes before names, and naming takes most of the time
    told, wrong = 0, []
    for mutant in mutants(exercise._reference):
        answers = exercise.ask(run_in_time(exercise.name, mutant.function), cases)
        verdict = exercise.judge(cases, answers)
        if verdict.failed in mutant.steps:
            told += 1
        elif verdict.passed:
            pairs = [pair for i in plain for pair in zip(answers[i], expected[i], strict=True)]
            gap = max((_gap(exercise._plain(a), exercise._plain(b)) for a, b in pairs), default=1.0)  # 1: all is chance
            if gap > 1e-4 and not any(text in mutant.line for text in ELSEWHERE_OF.get(unit, ())):
                wrong.append((mutant.line, "passes", ""))  # else it computes the same: no mistake
        elif any(
            word in verdict.what
            for word in ("raises", "returns", "expected a", "of the result stands", "did not finish")
        ):
            pass  # the error with the student's own line, or the wrong shape, says where to look
        elif not any(text in mutant.line for text in ELSEWHERE_OF.get(unit, ())):
            wrong.append((mutant.line, f"expected {mutant.steps}, failed {verdict.failed!r}", verdict.what))
    assert not wrong, "\n" + "\n".join(" | ".join(row) for row in wrong)
    assert told >= LEAST.get(exercise.name, 1), f"only {told} mutants with their step told: are the lines still marked?"


def test_many_of_them_are_named_by_no_list():
    """Of the five quick exercises alone; comparing with all known mistakes is what takes time."""
    nameless = 0
    for name in ("attention_scores", "mask_to_bias", "split_heads", "merge_heads", "causal_mask"):
        exercise = checks.find("01_attention", name)
        for mutant in mutants(exercise._reference):
            verdict = exercise.verdict(run_variant(exercise.name, mutant.function), seed=3)
            nameless += not verdict.passed and verdict.mistake is None and verdict.failed in mutant.steps
    assert nameless >= 15


def test_the_marks_in_the_references_name_real_parts():
    for _, exercise in EVERY:
        names = {part.name for part in exercise.parts}
        marked = {step for mutant in mutants(exercise._reference) for step in mutant.steps}
        assert marked <= names, f"{exercise.number}: no part is called {marked - names}"
