"""RoBERTa, ALBERT and DistilBERT against transformers: values, gradients, names, and every tensor counted."""

import json
from dataclasses import replace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bert_minimal import Bert, heads, variants
from bert_minimal.checkpoint import state_for_file
from bert_minimal.config import names_in_files

from .parity import CONFIG, assert_close, assert_gradients_close, make_loud
from .test_checkpoint import same_parameters

SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "labels": ("x", "y", "z"),
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
TINY = {
    "roberta": variants.RobertaConfig(**SIZES, max_position_embeddings=18),
    "albert": variants.AlbertConfig(**SIZES, max_position_embeddings=16, embedding_size=7),
    "distilbert": variants.DistilBertConfig(**SIZES, max_position_embeddings=16),
}
BASE = {
    "roberta": variants.RobertaConfig(),
    "albert": variants.AlbertConfig(),
    "distilbert": variants.DistilBertConfig(),
}
# What each family has in transformers: our class, theirs.
CLASSES = [
    (family, cls, cls.hf_name.replace("Bert", config.encoder_class().__name__))
    for family, config in TINY.items()
    for cls in (Bert, heads.MaskedLM, heads.SequenceClassifier, heads.TokenClassifier, heads.QuestionAnswering)
] + [("albert", heads.PreTraining, "AlbertForPreTraining")]
every_class = pytest.mark.parametrize(("family", "cls", "hf_name"), CLASSES, ids=[name for *_, name in CLASSES])


def build(cls, config):
    if cls is heads.PreTraining:  # transformers wants two labels for the two orders
        config = replace(config, labels=("in order", "swapped"))
    return (config.encoder_class() if cls is Bert else cls)(config)


def batch(config, lengths=(7, 4, 9)):
    """Ids from 3 on: the rows of padding get no gradient in transformers. Padding holds the family's padding id."""
    generator = torch.Generator().manual_seed(0)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(3, config.vocab_size, mask.shape, generator=generator)
    inputs = {"input_ids": torch.where(mask == 1, ids, config.pad_token_id), "attention_mask": mask}
    if config.type_vocab_size == 2:
        inputs["token_type_ids"] = torch.randint(0, 2, mask.shape, generator=generator)
    return inputs


def twin_of(model, hf_name):
    hf_class = getattr(transformers, hf_name)
    entries = model.config.to_hf()
    twin = hf_class(hf_class.config_class(**entries, attn_implementation="eager"))
    twin = twin.to(next(model.parameters()).dtype)
    missing, unexpected = twin.load_state_dict(state_for_file(model), strict=False)
    assert not unexpected
    assert all(
        "decoder" in name or name in ("vocab_projector.weight",) or name.startswith("pooler") for name in missing
    )
    twin.tie_weights()
    return twin.train(model.training)


def outputs(out):
    """Whatever a model of either library gives, in one order."""
    names = (
        "last_hidden_state",
        "pooler_output",
        "logits",
        "prediction_logits",
        "sop_logits",
        "start_logits",
        "end_logits",
    )
    return {name: getattr(out, name) for name in names if getattr(out, name, None) is not None}


def both_answers(model, twin, inputs):
    """[(name, ours, theirs)] with the padded rows left out."""
    real = inputs["attention_mask"].bool()
    if isinstance(model, heads.PreTraining):
        stream, where = model.bert.pack(**inputs)
        pieces, order = model.stream(torch.arange(len(where)), **stream._asdict())
        theirs = twin(**inputs)
        return [("pieces", pieces, theirs.prediction_logits[real]), ("order", order, theirs.sop_logits)]
    ours, theirs = outputs(model(**inputs)), outputs(twin(**inputs))
    assert ours.keys() == theirs.keys()
    rows = []
    for name, a in ours.items():
        per_token = a.shape[:2] == real.shape
        rows.append((name, a[real] if per_token else a, theirs[name][real] if per_token else theirs[name]))
    return rows


def backward(rows):
    for side in (1, 2):
        generator = torch.Generator().manual_seed(3)
        sum(
            (row[side] * torch.randn(row[side].shape, generator=generator).to(row[side].dtype)).sum() for row in rows
        ).backward()


@every_class
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_equals_transformers_in_value_and_gradient(family, cls, hf_name, dtype):
    model = make_loud(build(cls, TINY[family]).to(dtype)).eval()
    twin, inputs = twin_of(model, hf_name), batch(TINY[family])
    rows = both_answers(model, twin, inputs)
    for name, ours, theirs in rows:
        assert_close(ours, theirs, name=name)
    if dtype == torch.float64:  # in float32 weights as loud as these leave 1e-5 of rounding in a softmax's gradient
        backward(rows)
        assert_gradients_close(model, twin, zero=("k_lin.bias",))


@every_class
def test_gradients_equal_transformers_in_float32(family, cls, hf_name):
    """To 1e-5 of each tensor's largest value, with weights less loud (the worst of three seeds: 2e-6)."""
    model = make_loud(build(cls, TINY[family])).eval()
    for name, p in model.named_parameters():
        p.data = 1 + (p.data - 1) / 4 if name.endswith("norm_weight") else p.data * (0.3 if p.ndim > 1 else 0.25)
    twin = twin_of(model, hf_name)
    backward(both_answers(model, twin, batch(TINY[family])))
    assert_gradients_close(model, twin, zero=("k_lin.bias",))


@pytest.mark.parametrize("family", TINY)
def test_definition_equals_stream(family):
    model, inputs = make_loud(build(Bert, TINY[family]).double()).eval(), batch(TINY[family])
    for side in (1, -1):  # padding on the right, on the left
        rows = {name: x if side == 1 else x.flip(1) for name, x in inputs.items()}
        fast = model(**rows, output_hidden_states=True)
        slow = model(**rows, output_hidden_states=True, output_attentions=True)
        assert len(fast.hidden_states) == 5
        assert len(slow.attentions) == 4
        for a, b in zip(fast.hidden_states, slow.hidden_states, strict=True):
            assert_close(a, b, 1e-12)


@every_class
def test_there_and_back_and_transformers_reads_it(family, cls, hf_name, tmp_path):
    model = make_loud(build(cls, TINY[family])).eval()
    model.save_pretrained(tmp_path)
    again = cls.from_pretrained(tmp_path)
    assert type(again) is type(model)
    assert again.config == model.config
    assert again.loaded == ([], [])
    assert same_parameters(model, again)

    hf_class = getattr(transformers, hf_name)
    theirs, info = hf_class.from_pretrained(tmp_path, output_loading_info=True, attn_implementation="eager")
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert theirs.config.architectures == [hf_name]
    for name, a, b in both_answers(model, theirs.eval(), batch(TINY[family])):
        assert_close(a, b, name=name)
    theirs.save_pretrained(tmp_path / "theirs")
    again = cls.from_pretrained(tmp_path / "theirs")
    assert again.config == model.config
    assert same_parameters(model, again)


@pytest.mark.parametrize("family", TINY)
def test_their_masked_lm_serves_our_encoder_and_classifier(family, tmp_path, capsys):
    config = TINY[family]
    hf_name = {"roberta": "RobertaForMaskedLM", "albert": "AlbertForMaskedLM", "distilbert": "DistilBertForMaskedLM"}
    theirs = getattr(transformers, hf_name[family])
    theirs = theirs(theirs.config_class(**config.to_hf()))
    theirs.save_pretrained(tmp_path)
    encoder = Bert.from_pretrained(tmp_path)
    assert {name.split(".")[0] for name in encoder.loaded.fresh} <= {"pooler"}
    assert len(encoder.loaded.unused) in (5, 6)
    capsys.readouterr()
    classifier = heads.SequenceClassifier.from_pretrained(tmp_path, labels=("no", "yes"))
    assert same_parameters(encoder.layers, classifier.bert.layers)
    assert classifier.loaded.fresh == ["classifier_weight", "classifier_bias", "bert.pooler.weight", "bert.pooler.bias"]
    assert "classifier_weight" in capsys.readouterr().out


@pytest.mark.parametrize("family", TINY)
def test_strict(family, tmp_path):
    """A tensor more, a tensor less, and a file of plain BERT are refused, by name."""
    model = make_loud(build(heads.MaskedLM, TINY[family]))
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"nobody.knows": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match=r"nobody\.knows"):
        heads.MaskedLM.from_pretrained(tmp_path)
    gone = next(name for name in tensors if "query" in name or "q_lin" in name)
    save_file({name: tensor for name, tensor in tensors.items() if name != gone}, path)
    with pytest.raises(ValueError, match="lacks tensors"):
        heads.MaskedLM.from_pretrained(tmp_path)
    if family != "roberta":
        heads.MaskedLM(replace(CONFIG, num_hidden_layers=4)).save_pretrained(tmp_path / "bert")
        (tmp_path / "bert" / "config.json").write_text(json.dumps(TINY[family].to_hf()))
        with pytest.raises(ValueError, match=r"does not know|does not fit"):
            heads.MaskedLM.from_pretrained(tmp_path / "bert")


PUBLISHED = {
    ("roberta", Bert): 124_645_632,
    ("albert", Bert): 11_683_584,
    ("distilbert", Bert): 66_362_880,
    ("roberta", heads.MaskedLM): 124_697_433,
    ("albert", heads.MaskedLM): 11_221_680,
    ("distilbert", heads.MaskedLM): 66_985_530,
}


@pytest.mark.parametrize(("family", "cls"), PUBLISHED)
def test_published_sizes_to_the_tensor(family, cls, monkeypatch):
    monkeypatch.setattr("bert_minimal.model.initialise_parameter", lambda *_: None)  # values don't matter here
    config, model = BASE[family], build(cls, BASE[family])
    hf_class = getattr(transformers, cls.hf_name.replace("Bert", config.encoder_class().__name__))
    with torch.device("meta"):
        twin = hf_class(hf_class.config_class(**config.to_hf()))
    ours = {name: p.shape for name, p in state_for_file(model).items()}
    assert ours == {name: p.shape for name, p in twin.named_parameters()}
    total = sum(p.numel() for p in model.parameters())
    assert total == sum(p.numel() for p in twin.parameters()) == PUBLISHED[family, cls]


@pytest.mark.long
@pytest.mark.parametrize("family", BASE)
def test_full_size_equals_transformers_in_value_and_gradient(family, monkeypatch):
    """roberta-base, albert-base-v2 and distilbert-base as they are, random weights, float64."""
    monkeypatch.setattr("bert_minimal.model.initialise_parameter", lambda *_: None)
    config = replace(BASE[family], hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model, generator = build(heads.MaskedLM, config).double().eval(), torch.Generator().manual_seed(0)
    for name, p in model.named_parameters():
        p.data.uniform_(-0.04, 0.04, generator=generator).add_(name.endswith("norm_weight"))
    twin = twin_of(
        model, {"roberta": "Roberta", "albert": "Albert", "distilbert": "DistilBert"}[family] + "ForMaskedLM"
    )
    rows = both_answers(model, twin, batch(config, (12, 5)))
    for name, ours, theirs in rows:
        assert_close(ours, theirs, name=name)
    backward(rows)
    assert_gradients_close(model, twin, zero=("k_lin.bias",))


# ---- RoBERTa


def test_positions_count_real_tokens_from_two():
    model = build(Bert, TINY["roberta"])
    ids = torch.tensor([[0, 7, 2, 1, 1], [1, 1, 0, 9, 2], [5, 6, 7, 8, 9]])
    expected = [[2, 3, 4, 1, 1], [1, 1, 2, 3, 4], [2, 3, 4, 5, 6]]
    assert model.positions(ids).tolist() == expected


def test_every_row_but_two_can_be_used():
    model, ids = build(Bert, TINY["roberta"]), torch.full((1, 16), 5)
    assert model(input_ids=ids).last_hidden_state.shape == (1, 16, 24)
    with pytest.raises(ValueError, match="17 tokens a sequence, but this model has 16 position vectors"):
        model(input_ids=torch.full((1, 17), 5))
    with pytest.raises(ValueError, match="token_type_ids"):
        model(input_ids=ids, token_type_ids=torch.ones_like(ids))


def test_byte_level_bpe_equals_transformers(tmp_path):
    from tokenizers import ByteLevelBPETokenizer

    texts = ["The bank rose, and the river with it.", "Zoë paid 30 € — twice! 🦉", "  two  spaces"]
    trained = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator(texts * 3, vocab_size=330, special_tokens=specials, show_progress=False)
    trained.save_model(str(tmp_path))
    ours = variants.byte_level_bpe(tmp_path)
    theirs = transformers.RobertaTokenizer.from_pretrained(tmp_path)
    for text in [*texts, "the <mask> owl", "unseen: ß 漢字"]:
        assert ours.encode(text).ids == theirs(text).input_ids
        assert ours.decode(ours.encode(text).ids, skip_special_tokens=False) == f"<s>{text}</s>"  # nothing is unknown
        assert ours.encode(text, "a pair").ids == theirs(text, "a pair").input_ids
    rows = ours.encode_batch(texts)
    assert len({len(row.ids) for row in rows}) == 1
    assert rows[2].ids[-1] == 1
    assert rows[2].attention_mask[-1] == 0


# ---- ALBERT


def test_one_layer_is_stored_and_run_many_times():
    model = build(Bert, TINY["albert"])
    layers = {name for name in model.state_dict() if name.startswith("layers.")}
    assert layers == {f"layers.0.{name}" for name, _ in model.layers[0].named_parameters()}
    assert len({id(layer) for layer in model.depth()}) == 1
    assert len(model.depth()) == 4
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in model.state_dict().values())


def test_deeper_is_no_larger():
    sizes = [
        sum(p.numel() for p in build(Bert, replace(TINY["albert"], num_hidden_layers=n)).parameters()) for n in (1, 9)
    ]
    assert sizes[0] == sizes[1]


# ---- all


def test_a_configuration_of_another_family_is_refused():
    with pytest.raises(ValueError, match=r"AlbertConfig describes another model: Albert\("):
        Bert(TINY["albert"])


@pytest.mark.parametrize(
    ("family", "entries"),
    [
        ("roberta", {"pad_token_id": 0}),
        ("albert", {"num_hidden_groups": 2}),
        ("albert", {"inner_group_num": 2}),
        ("albert", {"layer_norm_eps": 1e-5}),
        ("distilbert", {"model_type": "bert"}),
    ],
)
def test_checkpoints_that_compute_something_else_are_refused(family, entries):
    with pytest.raises(ValueError, match=next(iter(entries))):
        type(BASE[family]).from_hf(BASE[family].to_hf() | entries)


@pytest.mark.parametrize("family", TINY)
def test_names_come_back(family):
    """No two of BERT's names become one, and each comes back as it went."""
    from bert_minimal.checkpoint import bert_name, names_for, table_for

    config, seen = TINY[family], set()
    for _, _, theirs in table_for(config.num_stored_layers, config.more_tensors):
        for name in theirs:
            written = name
            for berts, other in names_for(config, classifier=False):
                written = written.replace(berts, other)
            if name.startswith("bert.pooler") and family != "albert":
                continue  # roberta's classifier has the same name for it
            assert bert_name(config, written) == name
            seen.add(written)
    assert len(seen) > 40 or family == "albert"
    assert names_in_files("bert", "tensor") == []


def test_dropout_rates_reach_the_variants():
    config = replace(TINY["albert"], hidden_dropout_prob=0.5)
    model = build(Bert, config).train()
    inputs = batch(config)
    assert not model(**inputs).last_hidden_state.equal(model(**inputs).last_hidden_state)
