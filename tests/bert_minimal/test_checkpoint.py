"""Files: there and back through transformers, everything strict, nothing by halves."""

import json
import os
import shutil
from dataclasses import replace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bert_minimal import Bert, BertConfig, checkpoint, heads
from bert_minimal.checkpoint import IGNORED, TABLE, load_weights, table_for

from .parity import CONFIG, assert_close, batch, make_loud

MODELS = [
    Bert,
    heads.MaskedLM,
    heads.NextSentence,
    heads.PreTraining,
    heads.SequenceClassifier,
    heads.TokenClassifier,
    heads.QuestionAnswering,
]
REAL = batch()["attention_mask"].bool()


def saved(model, folder):
    model.save_pretrained(folder)
    return folder


def rewrite(folder, change):
    """Change the tensors in a folder's file."""
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def same_parameters(a, b):
    b = dict(b.named_parameters())
    return all(p.equal(b.pop(name)) for name, p in a.named_parameters()) and not b


@pytest.mark.parametrize("cls", MODELS)
def test_there_and_back_and_transformers_reads_it(cls, tmp_path):
    model = make_loud(cls(replace(CONFIG, labels=("x", "y", "z")))).eval()
    saved(model, tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    again = cls.from_pretrained(tmp_path)
    assert again.config == model.config
    assert again.loaded == ([], [])
    assert not again.training
    assert same_parameters(model, again)

    hf_class = getattr(transformers, cls.hf_name)
    theirs, info = hf_class.from_pretrained(tmp_path, output_loading_info=True, attn_implementation="eager")
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    assert theirs.config.architectures == [cls.hf_name]
    if cls is Bert:
        assert_close(model(**batch()).last_hidden_state[REAL], theirs.eval()(**batch()).last_hidden_state[REAL])

    theirs.save_pretrained(tmp_path / "theirs")
    assert same_parameters(model, cls.from_pretrained(tmp_path / "theirs"))


def test_every_parameter_is_in_the_table_once():
    names = [ours for _, ours, _ in table_for(2)]
    assert len(names) == len(set(names))
    theirs = [name for *_, names in table_for(2) for name in names]
    assert len(theirs) == len(set(theirs))
    ours = set()
    for cls in MODELS:
        ours |= {checkpoint.canonical(name) for name, _ in cls(replace(CONFIG, num_hidden_layers=2)).named_parameters()}
    assert ours == set(names)
    assert len(TABLE) == 17


def test_pretraining_file_serves_every_model(tmp_path, capsys):
    """Heads the file has not start fresh, and that is said; heads the model has not are listed."""
    pretrained = make_loud(heads.PreTraining(CONFIG))
    saved(pretrained, tmp_path)
    encoder = Bert.from_pretrained(tmp_path)
    assert same_parameters(pretrained.bert, encoder)
    assert encoder.loaded.fresh == []
    assert encoder.loaded.unused == [
        "cls.predictions.bias",
        "cls.predictions.transform.LayerNorm.bias",
        "cls.predictions.transform.LayerNorm.weight",
        "cls.predictions.transform.dense.bias",
        "cls.predictions.transform.dense.weight",
        "cls.seq_relationship.bias",
        "cls.seq_relationship.weight",
    ]
    assert capsys.readouterr().out == ""
    torch.manual_seed(0)
    classifier = heads.SequenceClassifier.from_pretrained(tmp_path, labels=("no", "yes", "maybe"))
    assert classifier.loaded.fresh == ["classifier_weight", "classifier_bias"]
    assert "classifier_weight, classifier_bias" in capsys.readouterr().out
    assert classifier.classifier_weight.shape == (3, 24)
    assert 0 < classifier.classifier_weight.abs().max() <= 0.04 + 1e-6
    assert (classifier.classifier_bias == 0).all()
    assert same_parameters(pretrained.bert, classifier.bert)


@pytest.mark.parametrize("cls", MODELS[1:])
def test_encoder_only_file_in_every_head(cls, tmp_path):
    encoder = make_loud(Bert(CONFIG, pooler=False))
    saved(encoder, tmp_path)
    model = cls.from_pretrained(tmp_path)
    assert same_parameters(encoder.embeddings, model.bert.embeddings)
    assert same_parameters(encoder.layers, model.bert.layers)
    expected = [n for n, _ in model.named_parameters() if not n.startswith(("bert.embeddings", "bert.layers"))]
    assert model.loaded.fresh == expected
    assert len(expected) > 0


def test_old_names_prefix_and_position_ids(tmp_path):
    """gamma and beta, "bert." before an encoder, and the buffer of positions: as files of 2018 to 2020 are."""
    model = make_loud(Bert(CONFIG))
    saved(model, tmp_path)
    rewrite(
        tmp_path,
        lambda tensors: {
            **{
                f"bert.{n}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                    "LayerNorm.bias", "LayerNorm.beta"
                ): t
                for n, t in tensors.items()
            },
            "bert.embeddings.position_ids": torch.arange(16)[None],
        },
    )
    again = Bert.from_pretrained(tmp_path)
    assert same_parameters(model, again)
    assert again.loaded == ([], ["bert.embeddings.position_ids"])
    assert set(again.loaded.unused) == IGNORED


def test_decoder_written_twice(tmp_path):
    """A file may hold the tied decoder a second time, or only there; a different one is another model."""
    model = make_loud(heads.MaskedLM(CONFIG))
    saved(model, tmp_path)
    word, bias = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
    twins = {"cls.predictions.decoder.weight": word, "cls.predictions.decoder.bias": bias}
    rewrite(tmp_path, lambda tensors: {**tensors, **{twin: tensors[name].clone() for twin, name in twins.items()}})
    assert same_parameters(model, heads.MaskedLM.from_pretrained(tmp_path))
    rewrite(tmp_path, lambda tensors: {n: t for n, t in tensors.items() if n not in (word, bias)})
    assert same_parameters(model, heads.MaskedLM.from_pretrained(tmp_path))
    rewrite(tmp_path, lambda tensors: {**tensors, word: tensors["cls.predictions.decoder.weight"] + 1})
    with pytest.raises(ValueError, match=r"decoder.weight and bert.embeddings.word_embeddings.weight differ"):
        heads.MaskedLM.from_pretrained(tmp_path)


def test_unknown_tensors_are_refused_by_name(tmp_path):
    saved(Bert(CONFIG), tmp_path)
    extra = {"encoder.layer.7.output.dense.bias": torch.zeros(24), "lm_head.weight": torch.zeros(1)}
    rewrite(tmp_path, lambda tensors: tensors | extra)
    with pytest.raises(ValueError, match=r"encoder.layer.7.output.dense.bias, lm_head.weight.*num_hidden_layers 3"):
        Bert.from_pretrained(tmp_path)


def test_missing_tensors_are_refused_by_name(tmp_path):
    saved(heads.MaskedLM(CONFIG), tmp_path)
    gone = ("bert.encoder.layer.1.attention.self.key.bias", "cls.predictions.transform.dense.bias")
    rewrite(tmp_path, lambda tensors: {name: t for name, t in tensors.items() if name not in gone})
    with pytest.raises(ValueError, match=f"{gone[0]}, {gone[1]}"):  # half a head is no fresh head
        heads.MaskedLM.from_pretrained(tmp_path)


def test_wrong_shapes_are_refused_by_name_and_the_model_stays(tmp_path):
    saved(heads.SequenceClassifier(CONFIG), tmp_path)
    with pytest.raises(ValueError, match=r'classifier.weight is \[2, 24\], expected \[3, 24\].*labels=\("no"'):
        heads.SequenceClassifier.from_pretrained(tmp_path, labels=("a", "b", "c"))
    model = Bert(replace(CONFIG, hidden_size=36))
    before = {name: p.clone() for name, p in model.named_parameters()}
    with pytest.raises(ValueError, match=r"query.weight is \[24, 24\], expected \[36, 36\]"):
        load_weights(model, tmp_path / "model.safetensors")
    assert all(p.equal(before[name]) for name, p in model.named_parameters())


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_truncated_files(keep, tmp_path):
    saved(Bert(CONFIG), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match="cut off or no safetensors file"):
        Bert.from_pretrained(tmp_path)


def test_pickles_are_not_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "it ran"),)

    saved(Bert(CONFIG), tmp_path)
    torch.save(Bomb(), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"pytorch_model.bin.*can run code"):
        Bert.from_pretrained(tmp_path)
    os.replace(tmp_path / "pytorch_model.bin", tmp_path / "model.safetensors")  # a pickle under a false name
    with pytest.raises(ValueError, match="no safetensors file"):
        Bert.from_pretrained(tmp_path)
    assert not (tmp_path / "it ran").exists()


def test_folders_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Bert.from_pretrained(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        Bert.from_pretrained(tmp_path)


def test_half_precision_file_loads_as_float32(tmp_path):
    saved(make_loud(Bert(CONFIG)).half(), tmp_path)
    assert load_file(tmp_path / "model.safetensors")["pooler.dense.bias"].dtype == torch.float16
    assert {p.dtype for p in Bert.from_pretrained(tmp_path).parameters()} == {torch.float32}


def test_failed_save_leaves_the_old_files(tmp_path, monkeypatch):
    old = make_loud(Bert(CONFIG))
    saved(old, tmp_path)

    def disk_full(state, path, metadata):
        path.write_bytes(b"half a fi")
        raise OSError("No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", disk_full)
    with pytest.raises(OSError, match="No space"):
        saved(make_loud(Bert(CONFIG), seed=1), tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    assert same_parameters(old, Bert.from_pretrained(tmp_path))


def test_saving_over_a_file_in_use(tmp_path):
    """Fine-tune and save back to the folder it came from: the file is mapped into memory meanwhile."""
    saved(make_loud(Bert(CONFIG)), tmp_path)
    model = Bert.from_pretrained(tmp_path)
    with torch.no_grad():
        model.pooler.bias += 1
    saved(model, tmp_path)
    assert same_parameters(model, Bert.from_pretrained(tmp_path))


def hub_cache(home, folder, repository):
    """A local copy of the hub's layout: blobs, a snapshot of links to them, and a ref."""
    top, revision = home / ("models--" + repository.replace("/", "--")), "c0ffee" * 6 + "c0ff"
    for part in ("blobs", "refs", f"snapshots/{revision}"):
        (top / part).mkdir(parents=True)
    (top / "refs" / "main").write_text(revision)
    for number, name in enumerate(("config.json", "model.safetensors")):
        shutil.copy(folder / name, top / "blobs" / str(number))
        (top / "snapshots" / revision / name).symlink_to(f"../../blobs/{number}")


@pytest.fixture
def offline_hub(tmp_path, monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_hub_id_from_a_local_copy_of_the_hub(tmp_path, offline_hub):
    model = make_loud(Bert(CONFIG))
    hub_cache(offline_hub, saved(model, tmp_path / "folder"), "somebody/bert-tiny.v1")
    assert same_parameters(model, Bert.from_pretrained("somebody/bert-tiny.v1"))
    with pytest.raises(OSError, match=r"somebody/another|offline|cached"):
        Bert.from_pretrained("somebody/another")


@pytest.mark.long
@pytest.mark.parametrize("name", ["base", "large"])
def test_base_and_large_through_a_local_copy_of_the_hub(name, tmp_path, offline_hub):
    """The published sizes, cased vocabulary, as transformers writes them."""
    config = BertConfig.preset(name, vocab_size=28996)
    theirs = transformers.BertForPreTraining(transformers.BertConfig(**config.to_hf()))
    theirs.save_pretrained(tmp_path / "folder")
    hub_cache(offline_hub, tmp_path / "folder", f"google-bert/bert-{name}-cased")
    model = Bert.from_pretrained(f"google-bert/bert-{name}-cased")
    assert model.config == config
    inputs = batch((17, 5, 30), config=config)
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        expected = theirs.bert.eval()(**inputs)
        assert_close(model(**inputs).last_hidden_state[real], expected.last_hidden_state[real])
        assert_close(model(**inputs).pooler_output, expected.pooler_output)


def test_real_checkpoints_say_what_is_fresh(minilm, bert_tiny_mlm):
    encoder = Bert.from_pretrained(minilm)
    assert encoder.loaded == ([], ["embeddings.position_ids"])
    tiny = Bert.from_pretrained(bert_tiny_mlm)
    assert tiny.loaded.fresh in ([], ["pooler.weight", "pooler.bias"])
    assert "cls.predictions.bias" in tiny.loaded.unused
    model = heads.MaskedLM.from_pretrained(minilm)
    assert [name for name in model.loaded.fresh if not name.startswith("mlm.")] == []
    assert json.loads((minilm / "config.json").read_text())["hidden_size"] == model.config.hidden_size


def test_both_files_have_the_usual_permissions(tmp_path):
    Bert(BertConfig.preset("tiny", vocab_size=30)).save_pretrained(tmp_path)
    modes = {path.name: path.stat().st_mode for path in tmp_path.iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]
