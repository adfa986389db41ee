"""The runner alone: values on the wire, limits, what it catches and what it leaves as it was."""

import ast
import cProfile
import inspect
import json
import random
import subprocess
import sys
import time
import warnings

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from coursework import runner

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def ask(function, *args, **changes):
    call = {"name": "f", "args": [runner.pack(arg) for arg in args], "kwargs": {"dict": []}, "wrt": [],
            "cotangents": [], "seed": 0, "exclude": [], "modules": [], "seconds": 2.0}  # fmt: skip
    namespace = {"f": function}
    (reply,) = json.loads(runner.serve(json.dumps({"calls": [call | changes], "device": "cpu"}), namespace))
    return reply


@given(PLAIN)
@settings(max_examples=100)
def test_plain_values_come_back_as_they_went(value):
    assert runner.unpack(json.loads(json.dumps(runner.pack(value)))) == value


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_tensors_come_back_as_they_went(dtype, shape):
    tensor = (torch.randn(shape) * 2).to(dtype)
    back = runner.unpack(json.loads(json.dumps(runner.pack(tensor))))
    assert back.dtype == dtype
    assert back.shape == tensor.shape
    assert torch.equal(back, tensor)


def test_views_parameters_dtypes_and_sets_cross_the_wire():
    base = torch.arange(12).view(3, 4)
    assert torch.equal(runner.unpack(runner.pack(base.T[1:])), base.T[1:])
    assert torch.equal(runner.unpack(runner.pack(torch.nn.Parameter(torch.ones(2)))), torch.ones(2))
    assert runner.unpack(runner.pack(torch.float16)) is torch.float16
    assert runner.unpack(runner.pack({1, 2})) == {1, 2}
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
    assert str(runner.unpack(runner.pack(special))) == str(special)


def test_what_is_not_plain_is_only_described():
    import numpy

    assert runner.pack(numpy.ones(3))["other"] == "numpy.ndarray"
    assert "other" in runner.pack(torch.ones(2).to_sparse())
    assert "too large" in runner.pack(torch.ones(1).expand(runner.LARGEST))["other"]
    loop = []
    loop.append(loop)
    assert "nested" in json.dumps(runner.pack(loop))


@pytest.mark.parametrize("number", [1, True, 0.5])
def test_a_number_that_numpy_made_is_a_number(number):
    """`(said == gold).mean()` on arrays: right answers were refused for returning a numpy.float64."""
    import numpy

    packed = runner.pack([numpy.array([number])[0]])
    assert (packed, type(packed[0])) == ([number], type(number))


def test_a_name_that_torch_has_but_no_dtype_is_refused():
    with pytest.raises(ValueError, match="not a dtype"):
        runner.unpack({"dtype": "save"})


def test_an_endless_loop_ends_and_costs_one_limit():
    def endless(x):
        while True:
            pass

    call = {"name": "f", "args": [1], "kwargs": {"dict": []}, "wrt": [], "cotangents": [], "seed": 0, "exclude": [],
            "modules": [], "seconds": 0.3}  # fmt: skip
    start = time.monotonic()
    replies = json.loads(runner.serve(json.dumps({"calls": [call] * 5, "device": "cpu"}), {"f": endless}))
    assert time.monotonic() - start < 3.0
    assert [reply["error"]["type"] for reply in replies] == ["TimeLimit"] * 5


def test_a_long_sleep_is_cut_short_and_a_short_one_is_not_work():
    def naps(x):
        for _ in range(100):
            time.sleep(0.01)

    assert ask(naps, 1, seconds=0.2)["error"] is None
    assert ask(naps, 1, seconds=0.05)["error"]["type"] == "TimeLimit"


def test_a_loop_that_catches_everything_once_ends_too():
    def stubborn(x):
        try:
            while True:
                pass
        except BaseException:
            while True:
                pass

    assert ask(stubborn, 1, seconds=0.2)["error"]["type"] == "TimeLimit"


def test_the_limit_strikes_no_one_afterwards():
    def nearly_late(x):
        start = time.process_time()
        while time.process_time() - start < 0.0098:
            pass

    ended = [ask(nearly_late, 1, seconds=0.01)["error"] for _ in range(60)]
    assert all(error is None or error["type"] == "TimeLimit" for error in ended)
    time.sleep(0.6)
    assert sum(range(10_000)) == 49_995_000


def test_profiling_works_after_a_call():
    """SetAsyncExc(thread, NULL) would leave CPython 3.11 in a state in which cProfile never ends."""
    ask(lambda x: x, 1)
    profile = cProfile.Profile()
    profile.enable()
    ask(lambda x: x, 1)
    profile.disable()
    assert profile.getstats()


def test_printing_and_warnings_are_kept_from_the_notebook(capsys):
    def talks(x):
        print("hello", file=sys.stdout)
        print("psst", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        print("y" * 10_000_000)
        return x

    reply = ask(talks, 3)
    assert reply["value"] == 3
    assert reply["printed"].startswith("hello\npsst\n")
    assert len(reply["printed"]) == runner.PRINTED
    assert capsys.readouterr() == ("", "")


def test_changes_in_place_are_seen_in_arguments_and_keywords():
    def changes(a, b, c=None):
        b.mul_(2)
        c["x"].add_(1)
        return a

    kwargs = runner.pack({"c": {"x": torch.ones(2)}})
    assert ask(changes, torch.ones(2), torch.ones(2), kwargs=kwargs)["changed"] == [1, "c"]
    assert ask(lambda a: a.clone().mul_(2), torch.ones(2))["changed"] == []


def test_gradients_of_tensors_and_of_dictionary_entries():
    x, w, g = torch.randn(3, 4), torch.randn(5, 4), torch.randn(3, 5)
    reply = ask(lambda x, weights: x @ weights["w"].T, x, {"w": w}, wrt=[[0], [1, "w"]], cotangents=[runner.pack(g)])
    grads = [runner.unpack(grad) for grad in reply["grads"]]
    assert torch.allclose(grads[0], g @ w)
    assert torch.allclose(grads[1], g.T @ x)
    detached = ask(lambda x: x.detach() * 2, x, wrt=[[0]], cotangents=[runner.pack(x)])
    assert detached["grads"] == [None]


def test_each_call_starts_alike_and_leaves_the_students_state():
    torch.manual_seed(5)
    random.seed(5)
    torch.set_default_dtype(torch.float64)
    try:
        before = torch.get_rng_state(), random.getstate()
        replies = [ask(lambda x: (torch.rand(2), random.random(), torch.ones(1)), 1, seed=9) for _ in range(2)]
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert replies[0]["value"] == replies[1]["value"]
    assert runner.unpack(replies[0]["value"])[2].dtype == torch.float32
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert ask(lambda x: torch.rand(2), 1, seed=10)["value"] != ask(lambda x: torch.rand(2), 1, seed=9)["value"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.softmax(x, -1),
        lambda x: x.softmax(-1),
        lambda x: torch.nn.Softmax(-1)(x),
        lambda x: torch.ops.aten._softmax(x, -1, False),
        lambda x: x.log_softmax(-1).exp(),
    ],
)
def test_an_excluded_function_is_refused_however_it_is_called(function):
    reply = ask(function, torch.ones(2, 3), exclude=["softmax"])
    assert reply["error"]["type"] == "Refused"
    assert "softmax" in reply["error"]["message"]
    assert ask(function, torch.ones(2, 3))["error"] is None


def _helper(x):
    from bert_minimal import attention

    return attention.merge_heads(x)


def test_what_holds_the_answers_is_refused_also_through_a_helper():
    reply = ask(lambda x: _helper(x), torch.ones(1, 2, 3, 4), modules=["bert_minimal"])
    assert reply["error"]["type"] == "Refused"
    assert "bert_minimal" in reply["error"]["message"]


def test_an_error_inside_pythons_own_modules_is_told_with_the_students_line():
    def fails(x):
        return random.randint(1, 0)  # my line

    assert ask(fails, torch.zeros(2))["error"]["line"] == "return random.randint(1, 0)  # my line"


def test_a_derived_error_is_told_as_what_it_derives_from():
    class TooLong(ValueError):
        pass

    def refuses(x):
        raise TooLong("shorten it")

    assert ask(refuses, 1)["error"] == {
        "type": "ValueError",
        "message": "shorten it",
        "line": 'raise TooLong("shorten it")',
    }
    assert ask(json.loads, "{")["error"]["type"] == "ValueError"  # JSONDecodeError
    assert ask(lambda x: {}[x], 1)["error"]["type"] == "KeyError"

    class ValueErrorOfMyOwn(Exception):
        pass

    ValueErrorOfMyOwn.__name__ = "ValueError"  # another class of that name is another error

    def pretends(x):
        raise ValueErrorOfMyOwn

    assert ask(pretends, 1)["error"]["type"] == "Exception"


def test_errors_carry_the_students_own_line():
    def fails(x):
        return x @ torch.ones(7, 7)  # the line

    error = ask(fails, torch.ones(2, 3))["error"]
    assert error["type"] == "RuntimeError"
    assert error["line"] == "return x @ torch.ones(7, 7)  # the line"

    class Broken(Exception):
        def __str__(self):
            raise ValueError

    def raises(x):
        raise Broken

    assert ask(raises, 1)["error"]["message"] == ""
    assert ask(lambda x: sys.exit(3), 1)["error"]["type"] == "SystemExit"


def test_a_missing_name_and_a_name_that_is_no_function():
    assert ask(3, 1)["error"]["type"] == "NotCallable"
    assert ask(None, 1, name="g")["error"]["type"] == "NotThere"


def test_an_interrupt_stops_the_remaining_calls():
    asked = []

    def interrupted(x):
        asked.append(x)
        raise KeyboardInterrupt

    call = {"name": "f", "args": [1], "kwargs": {"dict": []}, "wrt": [], "cotangents": [], "seed": 0, "exclude": [],
            "modules": [], "seconds": 2.0}  # fmt: skip
    runner.serve(json.dumps({"calls": [call] * 3, "device": "cpu"}), {"f": interrupted})
    assert asked == [1]


def test_the_runner_imports_nothing_of_the_course_and_names_no_exercise():
    tree = ast.parse(inspect.getsource(runner))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names) | {"torch", "numpy"}
    assert "attention_scores" not in inspect.getsource(runner)


# ---------------------------------------------------------------- probes and drivers


class Doubles(torch.nn.Module):  # sent as its source
    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x):
        return 2 * F.linear(x, self.weight)


def count_and_call(make, x):
    """A driver: makes the student's model and asks it."""
    model = make()
    return [len(list(model.parameters())), model.eval()(x), model.training]


def test_a_probe_arrives_as_what_it_stands_for():
    x, weight = torch.randn(3, 4), torch.randn(5, 4)
    reply = ask(lambda model, x: model(x), runner.Probe.of(Doubles, weight), x)
    assert torch.allclose(runner.unpack(reply["value"]), 2 * x @ weight.T)
    reply = ask(lambda make, x: make(x + 1)(x), runner.Probe.of(Doubles), x.T)  # without arguments: the class itself
    assert torch.allclose(runner.unpack(reply["value"]), 2 * x.T @ (x.T + 1).T)
    assert "bert" not in json.dumps(runner.pack(runner.Probe.of(Doubles)))


def test_a_driver_asks_in_the_students_place():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x):
            return x + 1

    driver = runner.pack(runner.Probe.of(count_and_call))
    count, value, training = runner.unpack(ask(Model, torch.zeros(2), driver=driver)["value"])
    assert (count, value.tolist(), training) == (2, [1.0, 1.0], False)

    def broken():
        return 1 / 0  # my line

    error = ask(broken, torch.zeros(2), driver=driver)["error"]
    assert (error["type"], error["line"]) == ("ZeroDivisionError", "return 1 / 0  # my line")


def test_a_class_that_borrows_is_refused():
    import bert_minimal

    class Heir(bert_minimal.Bert):
        pass

    class Hides(torch.nn.Module):
        def forward(self, x):
            return bert_minimal.Bert

    for made in (Heir, Hides, lambda: Hides()):
        assert ask(made, modules=["bert_minimal"])["error"]["type"] == "Refused"


@pytest.mark.parametrize("switch", ["torch.set_grad_enabled(False)", "torch.inference_mode(True).__enter__()"])
def test_gradients_come_out_of_a_fresh_process_in_which_they_are_switched_off(switch):
    """The first gradient of a process is taken by the runner itself, before the student's function is called."""
    call = {"name": "f", "args": [runner.pack(torch.tensor([3.0]))], "kwargs": {"dict": []}, "wrt": [[0]],
            "cotangents": [runner.pack(torch.ones(1))], "seed": 0, "exclude": [], "modules": [],
            "seconds": 5.0}  # fmt: skip
    script = f"""
import torch
from coursework import runner
{switch}
print(runner.serve({json.dumps({"calls": [call], "device": "cpu"})!r}, {{"f": lambda x: x * x}}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    (reply,) = json.loads(done.stdout)
    assert reply["error"] is None
    assert runner.unpack(reply["grads"][0]).tolist() == [6.0]
