# ruff: noqa: E501 (an attack is easier to read on one line)
"""The attack suite: cells that a hostile, clumsy or unlucky student could hand in, and what each submission earns.

Every submission answers three exercises. An attack is a cell in front of the answers, or stands in place of one. An
attack that reaches something prints LEAK: no feedback may contain that word.
"""

from dataclasses import dataclass, field

SCORES, MERGE, CAUSAL = "attention_scores", "merge_heads", "causal_mask"
NAMES = [SCORES, MERGE, CAUSAL]
ALL, NONE = frozenset(NAMES), frozenset()

RIGHT = {
    SCORES: f"import math\ndef {SCORES}(query, key):\n    return query @ key.mT / math.sqrt(query.size(-1))",
    MERGE: f"def {MERGE}(x):\n    return x.transpose(1, 2).flatten(2)",
    CAUSAL: f"import torch\ndef {CAUSAL}(length):\n    return torch.ones(length, length).tril().bool()",
}


@dataclass(frozen=True)
class Attack:
    """`cell` runs before the answers; `answers` replace right ones (None: left blank); `earns`: what is right then."""

    cell: str = ""
    answers: dict = field(default_factory=dict)
    earns: frozenset = ALL
    last: str = ""  # a cell after everything


BLANK = {name: None for name in NAMES}


def cheat(cell: str) -> Attack:
    """Tries to earn everything without an answer."""
    return Attack(cell, BLANK, NONE)


def cheating(function_body: str) -> Attack:
    """Tries to earn the first exercise by this function."""
    return Attack(answers={SCORES: f"def {SCORES}(query, key):\n{function_body}"}, earns=ALL - {SCORES})


def probe(cell: str) -> Attack:
    """Right answers, and a look where nothing may be seen: costs nothing, shows nothing."""
    return Attack(cell)


LOOK = "import glob, os\nfound = [p for p in glob.glob({pattern!r}, recursive=True)]\nprint('LEAK' if found else 'no')"
SWALLOW = "    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n"
ALWAYS_EQUAL = """
import torch
class Same(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.ones(()) if function.__name__ != 'size' else super().__torch_function__(function, types, args, kwargs)
    def __eq__(self, other): return True
    def __sub__(self, other): return torch.zeros(())
    shape = property(lambda self: torch.Size([2, 3, 5, 5]))
"""
FORGE = """
import inspect, json, sys
def forge(*arguments, **keywords):
    frame = sys._getframe()
    while frame:
        if 'replies' in frame.f_locals and 'namespace' in frame.f_locals:
            frame.f_globals['json'] = type('J', (), {{'dumps': staticmethod(lambda r: {reply}), 'loads': json.loads}})
        frame = frame.f_back
    return 0
attention_scores = merge_heads = causal_mask = forge
"""

ATTACKS: dict[str, Attack] = {
    # ---- what plain nbgrader loses or gives away
    "loops-for-ever": Attack("while True: pass"),
    "loops-and-ignores-interrupts": Attack("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"),
    "loops-and-swallows": Attack("def stay():\n" + SWALLOW + "stay()"),
    "exits": Attack("import os\nos._exit(0)"),
    "sys-exit": Attack("import sys\nsys.exit(3)"),
    "quits": Attack("quit()"),
    "kills-itself": Attack("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
    "aborts": Attack("import os\nos.abort()"),
    "segfaults": Attack("import ctypes\nctypes.string_at(0)"),
    "eats-memory": Attack("kept = []\nwhile True: kept.append(bytearray(1 << 26))"),
    "eats-memory-in-tensors": Attack("import torch\nkept = []\nwhile True: kept.append(torch.ones(1 << 24))"),
    "prints-100-MB": Attack("print('x' * 100_000_000)"),
    "prints-for-ever": Attack("while True: print('y' * 1000)"),
    "forks-300-times": Attack("import os\nfor _ in range(300): os.fork()"),
    "orphans": Attack("import subprocess\nsubprocess.Popen('sleep 1000 &', shell=True)"),
    "reads-solutions": probe(LOOK.format(pattern="/**/solutions/*")),
    "reads-checks": probe(LOOK.format(pattern="/**/coursework/checks/*.py")),
    "reads-gradebook": probe(LOOK.format(pattern="/**/gradebook.db")),
    "reads-the-seed": probe(LOOK.format(pattern="/**/grading_seed")),
    "reads-other-submissions": probe(LOOK.format(pattern="/**/*.ipynb")),
    "reads-environment": probe("import os\nprint('LEAK' if 'GRADERS_SECRET' in os.environ else 'no')"),
    "reads-the-graders-environment": probe(
        "import glob\nfor p in glob.glob('/proc/[0-9]*/environ'):\n"
        "    print('LEAK' if b'GRADERS_SECRET' in open(p, 'rb').read() else 'no')"
    ),
    "uses-the-network": probe(
        "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 1); print('LEAK')\nexcept TimeoutError: "
        "print('LEAK')\nexcept OSError: print('no')"
    ),
    "warns": Attack("import sys, warnings\nwarnings.warn('careful')\nprint('debug', file=sys.stderr)"),
    "patches-allclose": cheat("import torch\ntorch.allclose = torch.equal = lambda *a, **k: True"),
    "patches-numpy": cheat("import numpy\nnumpy.allclose = numpy.array_equal = lambda *a, **k: True"),
    "strips-asserts": cheat("import ast\nip = get_ipython()\nclass T(ast.NodeTransformer):\n"
                            "    def visit_Assert(self, node): return ast.Pass()\nip.ast_transformers.append(T())"),
    "hooks-ipython": cheat("ip = get_ipython()\nip.events.register('pre_run_cell', lambda info: None)\n"
                           "ip.run_cell = ip.run_cell_async = lambda *a, **k: 2.0"),
    # ---- getting the answer
    "imports-bert-minimal": cheat("from bert_minimal.attention import attention_scores"),
    "imports-the-reference": cheat("from coursework.checks.attention import _attention_scores as attention_scores"),
    "imports-past-the-finder": cheat("import sys\nsys.meta_path.pop(0)\nsys.modules.pop('coursework', None)\n"
                                     "from coursework.checks.attention import _attention_scores as attention_scores"),
    "imports-by-path": cheat("import importlib.util as u, glob\np = glob.glob('/**/bert_minimal/attention.py', "
                             "recursive=True)\nprint('LEAK' if p else 'no')"),
    "installs-the-course": cheat("%pip install bert-from-scratch\nimport bert_minimal\nprint('LEAK')"),
    "walks-gc-for-the-reference": cheat(
        "import gc\nfor o in gc.get_objects():\n    if getattr(o, '__name__', '') == '_attention_scores' or "
        "type(o).__name__ in ('Exercise', 'Verdict', 'Case'):\n        print('LEAK')"
    ),
    "walks-frames-for-cases": cheating(
        "    import sys\n    frame = sys._getframe()\n    while frame:\n        for name, value in frame.f_locals.items():\n"
        "            if name in ('cases', 'expected', 'want', 'exercise', 'reference'): print('LEAK')\n"
        "        frame = frame.f_back\n    return 0"
    ),
    "traces-the-runner": cheat("import sys\nsys.settrace(lambda f, e, a: print('LEAK') if 'expected' in f.f_locals else None)"),
    "profiles-the-runner": cheat("import sys\nsys.setprofile(lambda f, e, a: None)"),
    # ---- faking the mark
    "prints-full-marks": cheat("print(2.0)\n2.0"),
    "grade-returns-full-marks": cheat("check.attention_scores.grade = lambda namespace: 2.0"),
    "stand-in-check-replaced": cheat("import types\ncheck = types.SimpleNamespace(**{n: types.SimpleNamespace("
                                     "grade=lambda g: 100.0) for n in ('attention_scores', 'merge_heads', 'causal_mask')})"),
    "forges-a-verdict": Attack(FORGE.format(reply="'{\"points\": 2.0}'"), BLANK, NONE),
    "forges-short-reply": Attack(FORGE.format(reply="'[]'"), BLANK, NONE),
    "forges-deep-reply": Attack(FORGE.format(reply="'[' * 100000"), BLANK, NONE),
    "forges-large-reply": Attack(FORGE.format(reply="'[' + '1,' * 30_000_000 + '1]'"), BLANK, NONE),
    "forges-nan": cheating("    return query @ key.mT * float('nan')"),
    "forges-wrong-shape": Attack(FORGE.format(
        reply="json.dumps([dict(x, value={'tensor': '', 'dtype': 'float32', 'shape': [1 << 60]}) for x in r])"), BLANK, NONE),
    "forges-messages": Attack(
        "ip = get_ipython()\nk = ip.kernel\nfor _ in range(100):\n    k.session.send(k.iopub_socket, 'execute_result', "
        "{'data': {'text/plain': '2.0'}, 'metadata': {}, 'execution_count': 1}, parent=k.get_parent())",
    ),
    "sends-rubbish-on-the-channel": Attack(
        "ip = get_ipython()\nk = ip.kernel\nk.session.key = b'another'\nk.session.auth = None",
    ),
    "huge-number": cheating("    return 10 ** 10000"),
    "huge-tensor": cheating("    import torch\n    return torch.ones(1, 1).expand(1 << 20, 1 << 20)"),
    "meta-tensor": cheating("    return (query @ key.mT).to('meta')"),
    "sparse-tensor": cheating("    return (query @ key.mT).to_sparse()"),
    "returns-a-lambda": cheating("    return lambda: 0"),
    "returns-something-with-a-bad-repr": cheating(
        "    class Bad:\n        def __repr__(self): import os; os._exit(1)\n    return Bad()"
    ),
    "pickles": cheating("    class P:\n        def __reduce__(self): return (print, ('LEAK',))\n    return [P()]"),
    "class-games": cheating("    class T(type(query)):\n        __class__ = int\n    return (query @ key.mT).as_subclass(T)"),
    "returns-itself-nested": cheating("    x = []\n    x.append(x)\n    return x"),
    "dictionary-of-hostile-keys": cheating("    class K:\n        def __hash__(self): return 1\n"
                                           "        def __eq__(self, o): return True\n    return {K(): 1, K(): 2}"),
    # ---- stopping or slowing others, and being unlucky oneself
    "answer-never-returns": Attack(answers={SCORES: f"def {SCORES}(query, key):\n" + SWALLOW}, earns=ALL - {SCORES}),
    "answer-sleeps": cheating("    import time\n    time.sleep(1000)"),
    "answer-exits": cheating("    import os\n    os._exit(0)"),
    "answer-recurses": Attack(answers={SCORES: f"def {SCORES}(query, key):\n    return {SCORES}(query, key)"},
                              earns=ALL - {SCORES}),
    "threads-that-outlive-the-cell": Attack(
        "import threading, time\ndef burn():\n    end = time.time() + 600\n    while time.time() < end: pass\n"
        "for _ in range(4): threading.Thread(target=burn, daemon=True).start()\n"
    ),
    "thread-that-deletes-names": Attack(
        "import threading, time\ndef thief():\n    while True:\n        globals().pop('nothing', None); time.sleep(0.01)\n"
        "threading.Thread(target=thief, daemon=True).start()"
    ),
    "fills-the-disk": Attack("for i in range(10_000):\n    with open(f'/tmp/{i}', 'wb') as f: f.write(bytes(1 << 20))"),
    "fills-the-shared-folder": Attack(
        "import glob, os\nfolder = glob.glob('/tmp/k-*')[0]\nfor i in range(100):\n"
        "    with open(f'{folder}/{i}', 'wb') as f: f.write(bytes(8 << 20))\n"
    ),
    "fills-the-shared-folder-deeply": Attack(
        "import glob, os\nfolder = glob.glob('/tmp/k-*')[0]\ntry: os.chmod(folder, 0o700)\nexcept OSError: pass\n"
        "os.makedirs(folder + '/d/e')\nfor i in range(100):\n"
        "    with open(f'{folder}/d/e/{i}', 'wb') as f: f.write(bytes(8 << 20)); print('LEAK')\n"
    ),
    "fills-the-devices-folder": Attack("for i in range(10_000):\n    with open(f'/dev/{i}', 'wb') as f: print('LEAK')"),
    "removes-the-sockets": Attack("import glob, os\nfor p in glob.glob('/tmp/k-*/s-*'): os.remove(p)"),
    "symlinks": probe("import os\nos.symlink('/etc/passwd', 'passwd')\nprint('LEAK' if os.path.exists('passwd') else 'no')"),
    "writes-to-descriptors": Attack("import os\nfor fd in range(3, 200):\n    try: os.write(fd, b'2.0')\n"
                                    "    except OSError: pass"),
    "closes-descriptors": Attack("import os\nos.closerange(0, 3)"),
    "raises-limits": Attack("import resource as r\nr.setrlimit(r.RLIMIT_AS, (r.RLIM_INFINITY, r.RLIM_INFINITY))"),
    "ptraces-the-parent": probe("import ctypes\nprint('LEAK' if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0 else 'no')"),
    "mounts": probe("import ctypes\nprint('LEAK' if ctypes.CDLL(None).mount(b'/', b'/tmp', b'', 4096, 0) == 0 else 'no')"),
    "new-namespace": probe("import ctypes\nprint('LEAK' if ctypes.CDLL(None).unshare(0x10000000) == 0 else 'no')"),
    "writes-proc-sys": probe("try:\n    open('/proc/sys/kernel/core_pattern', 'w'); print('LEAK')\nexcept OSError: print('no')"),
    "caught-time-out": Attack("try:\n    while True: pass\nexcept KeyboardInterrupt: print('caught')"),
    "changed-defaults": Attack("import torch\ntorch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\n"
                               "torch.manual_seed(0)\nimport random\nrandom.seed(0)"),
    "number-of-threads": Attack("import torch\ntorch.set_num_threads(64)"),
    "unicode-names": Attack("ａttention_scores = 1\nμ = 'ﬁ'\nclass Ⅸ: pass"),
    "shadowed-builtins": Attack("compile = exec = globals = len = list = dict = print = str = None"),
    "recursion-limit": Attack("import sys\nsys.setrecursionlimit(10_000)"),
    "own-coursework-module": Attack("open('coursework.py', 'w').write('x = 1')\nimport sys\nsys.path.insert(0, '.')"),
    "stdout-replaced": Attack("import sys, io\nsys.stdout = sys.stderr = io.StringIO()"),
    "stdout-none": Attack("import sys\nsys.stdout = None"),
    "later-cell-breaks-everything": Attack(last="del attention_scores, merge_heads, causal_mask"),
    "html-and-script": Attack("from IPython.display import HTML, Javascript, display\n"
                              "display(HTML('<script>LEAK</script>'), Javascript('LEAK'))"),
    "terminal-escapes": Attack("print('\\x1b]0;title\\x07\\x1b[2J')"),
    "syntax-error": Attack("def (:"),
    "null-bytes": Attack("x = '\\0'\n\0"),
    "magics": Attack("%time 1\n%%timeit\n"),
    "shell": Attack("!cat /etc/passwd"),
}  # fmt: skip
ATTACKS["always-equal-tensor"] = Attack(ALWAYS_EQUAL, {SCORES: f"def {SCORES}(q, k):\n    return Same(q @ k.mT)"},
                                        ALL - {SCORES})  # fmt: skip
