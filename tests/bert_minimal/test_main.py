"""The command line: its numbers are transformers' numbers, and wrong input gets one sentence."""

import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bert_minimal.__main__ import main
from bert_minimal.heads import MaskedLM
from bert_minimal.variants import DistilBertConfig
from bert_minimal.wordpiece import SPECIAL, WordPiece

pytest.importorskip("tyro")
transformers = pytest.importorskip("transformers")

TEXTS = ["The old lamp by the door was lit.", "Nobody came.", "", "A lamp, a door; and rain until morning."]


def mean_of(folder, texts):
    """Mean pooling as transformers computes it, one text at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    rows = []
    for text in texts:
        batch = tokenizer(text, truncation=True, max_length=512, return_tensors="pt")
        with torch.inference_mode():
            rows.append(model(**batch).last_hidden_state[0].mean(0).numpy())
    return np.stack(rows)


def test_fill_mask_prints_the_guesses_of_transformers(bert_tiny_mlm, capsys):
    text = "The [MASK] was closed, so we went to the [MASK]."
    main(["fill-mask", text, "--model", str(bert_tiny_mlm), "--top", "3"])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == text
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert_tiny_mlm)
    model = transformers.BertForMaskedLM.from_pretrained(bert_tiny_mlm).eval()
    batch = tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        logits = model(**batch).logits[batch.input_ids == tokenizer.mask_token_id]
    best = logits.softmax(-1).topk(3)
    for number, (line, ps, ids) in enumerate(zip(printed[1:], best.values, best.indices, strict=True), 1):
        expected = [f"{tokenizer.convert_ids_to_tokens(int(i))} {p:.1%}" for p, i in zip(ps, ids, strict=True)]
        assert line.split(":  ") == [f"  [MASK] {number}", "   ".join(expected)]


def test_encode_writes_the_means_of_transformers(minilm, tmp_path, capsys):
    out = tmp_path / "vectors"  # no .npy: the name is kept as given
    main(["encode", *TEXTS, "--out", str(out), "--model", str(minilm)])
    assert "4 vectors of 384 numbers" in capsys.readouterr().out
    vectors, expected = np.load(out), mean_of(minilm, TEXTS)
    assert vectors.dtype == np.float32
    assert abs(vectors - expected).max() <= 1e-5 * abs(expected).max()


def test_encode_reads_lines_in_batches_and_says_what_it_cut(bert_tiny_mlm, tmp_path, capsys, monkeypatch):
    lines = [f"line {i} of many" for i in range(33)] + ["rain " * 600]  # two batches
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    main(["encode", "-", "--out", str(tmp_path / "v.npy"), "--model", str(bert_tiny_mlm)])
    assert "1 of 34 texts were longer than 512 pieces" in capsys.readouterr().out
    vectors, expected = np.load(tmp_path / "v.npy"), mean_of(bert_tiny_mlm, lines)
    assert abs(vectors - expected).max() <= 1e-5 * abs(expected).max()


@pytest.mark.parametrize(("name", "kind"), [("minilm", "BertModel"), ("bert_tiny_mlm", "BertForMaskedLM")])
def test_export_is_opened_by_transformers_with_the_same_numbers(name, kind, request, tmp_path, capsys):
    source, folder = request.getfixturevalue(name), tmp_path / "exported"
    main(["export", str(source), str(folder)])
    assert f"{kind}, " in capsys.readouterr().out
    cls = getattr(transformers, kind)
    before = cls.from_pretrained(source).eval()
    after, info = cls.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    text = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS[0], return_tensors="pt")
    assert text.input_ids.tolist() == [transformers.AutoTokenizer.from_pretrained(source)(TEXTS[0]).input_ids]
    with torch.inference_mode():
        assert torch.equal(after.eval()(**text)[0], before(**text)[0])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fill-mask", "no blank", "--model", "minilm"], "write [MASK] where a piece is missing"),
        (["fill-mask", "a [MASK]", "--model", "minilm"], "minilm was saved without its mlm part"),
        (["fill-mask"], "no text given"),
        (["encode", "--out", "x.npy"], "no text given"),
        (["fill-mask", "a [MASK]", "--top", "0"], "--top is 0: ask for one guess or more"),
        (["encode", "a", "--out", "x.npy", "--model", "./nowhere"], "there is no folder"),
    ],
)
def test_wrong_input_gets_one_sentence(arguments, says, minilm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert says in str(stopped.value)
    assert str(stopped.value).startswith("error: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt", "pytorch_model.bin"])
def test_export_overwrites_nothing(name, bert_tiny_mlm, tmp_path):
    (tmp_path / name).write_bytes(b"precious")
    with pytest.raises(SystemExit, match="already holds files"):
        main(["export", str(bert_tiny_mlm), str(tmp_path)])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"precious"]


def test_export_keeps_the_head_of_another_family(tmp_path, capsys):
    config = DistilBertConfig.preset("tiny", vocab_size=30, hidden_size=16, num_attention_heads=2)
    MaskedLM(config).save_pretrained(tmp_path / "a")
    WordPiece([*SPECIAL, *"abcdefghijklmnopqrstuvwxy"]).save_pretrained(tmp_path / "a")
    main(["export", str(tmp_path / "a"), str(tmp_path / "b")])
    assert "DistilBertForMaskedLM" in capsys.readouterr().out
    before, after = (load_file(tmp_path / folder / "model.safetensors") for folder in "ab")
    assert before.keys() == after.keys()


def test_export_says_what_it_leaves_out(bert_tiny_mlm, tmp_path, capsys):
    """A file whose config.json names no class is opened as the encoder alone."""
    source = tmp_path / "source"
    shutil.copytree(bert_tiny_mlm, source)
    entries = json.loads((source / "config.json").read_text(encoding="utf-8"))
    (source / "config.json").write_text(json.dumps({**entries, "architectures": None}), encoding="utf-8")
    main(["export", str(source), str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "left out, for BertModel has no place for it: cls.predictions.bias" in said
    assert "cls.predictions.decoder.weight" not in said  # a second copy of the embeddings, which are there


def test_breaking_off_is_no_traceback(monkeypatch):
    def broken_off(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("tyro.extras.subcommand_cli_from_dict", broken_off)
    with pytest.raises(SystemExit, match="goes on from its last state with the same command"):
        main(["pretrain", "out"])


def test_the_module_runs_and_lists_its_commands():
    done = subprocess.run([sys.executable, "-m", "bert_minimal", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(re.search(rf"\b{command}\b", done.stdout) for command in ("fill-mask", "encode", "export"))
