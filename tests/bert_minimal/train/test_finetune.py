"""Fine-tuning for classification on a tiny model: what it learns, what it keeps, what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bert_minimal import Bert, WordPiece
from bert_minimal.heads import SequenceClassifier
from bert_minimal.train import finetune
from bert_minimal.train.finetune import (
    Batches,
    ClassObjective,
    FineTuneOptions,
    Text,
    balanced,
    class_logits,
    class_names,
    class_numbers,
    classify,
    encode_texts,
    open_start,
    text_batch,
    text_logits,
)
from bert_minimal.train.loop import TrainingStopped
from bert_minimal.variants import DistilBertConfig
from bert_minimal.wordpiece import SPECIAL

pytestmark = pytest.mark.usefixtures("one_thread")
FAST = FineTuneOptions(epochs=6, batch=8, learning_rate=3e-3, max_length=16)


def texts(count: int, seed: int) -> list[Text]:
    """ "good" and "bad" decide, anywhere in the sentence."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        words = rng.choice(["the", "lamp", "was", "very", "warm", "a", "boat", "river"], rng.integers(2, 7)).tolist()
        label = ["bad", "good"][rng.integers(2)]
        words.insert(rng.integers(len(words) + 1), label)
        found.append(Text(" ".join(words), label))
    return found


TRAIN, DEV = texts(64, 0), texts(40, 1)


@pytest.fixture(scope="module")
def learned(tiny, one_thread):
    return classify(tiny, TRAIN, DEV, options=FAST)


def test_it_learns(learned):
    assert learned.labels == ("bad", "good")
    assert learned.scores["accuracy"] >= 0.95
    assert learned.scores["accuracy"] == max(r["held_out_accuracy"] for r in learned.log if "held_out_accuracy" in r)
    assert not learned.model.training
    assert all(p.grad is None and p.dtype == torch.float32 for p in learned.model.parameters())


def test_answers_are_the_logits_of_the_model_itself(learned):
    rows = [learned.tokenizer(t.text, max_length=16, return_tensors="pt") for t in DEV]
    with torch.inference_mode():
        one_by_one = [learned.model(input_ids=r.input_ids).logits[0] for r in rows]
    np.testing.assert_allclose(learned.answers, torch.stack(one_by_one).numpy(), rtol=1e-4, atol=1e-5)
    loss = F.cross_entropy(torch.stack(one_by_one), torch.tensor([["bad", "good"].index(t.label) for t in DEV]))
    assert learned.scores["loss"] == pytest.approx(loss.item(), rel=1e-4)


def test_logits_keep_their_order_and_survive_saving(learned, tmp_path, monkeypatch):
    monkeypatch.setattr(finetune, "ANSWER_TOKENS", 300)  # many batches, sorted by length
    many = texts(150, 2)
    logits = class_logits(learned, many)
    assert np.allclose(logits[97], class_logits(learned, many[97:98])[0], atol=1e-5)
    learned.model.save_pretrained(tmp_path)
    again = replace(learned, model=SequenceClassifier.from_pretrained(tmp_path))
    assert again.model.config.labels == ("bad", "good")
    np.testing.assert_allclose(class_logits(again, many), logits, atol=1e-6)


def test_a_seed_is_a_run(tiny, learned):
    again, other = (classify(tiny, TRAIN, DEV, options=replace(FAST, seed=seed)) for seed in (0, 1))
    assert np.array_equal(again.answers, learned.answers)
    assert not np.array_equal(other.answers, learned.answers)


def test_frozen_leaves_the_encoder_and_learns_the_rest(tiny):
    before = dict(Bert.from_pretrained(tiny).named_parameters())
    result = classify(tiny, TRAIN, DEV, options=replace(FAST, frozen=True))
    for name, p in result.model.bert.named_parameters():
        assert torch.equal(p, before[name]) != name.startswith("pooler."), name
        assert p.requires_grad
    assert result.scores["loss"] < np.log(2)


def test_a_frozen_encoder_drops_nothing(tiny):
    _, model = open_start(SequenceClassifier, tiny, FAST)
    learner = finetune.HeadOnly(model).train()
    batch = text_batch(encode_texts(WordPiece.from_pretrained(tiny), TRAIN[:4], FAST))
    stream = finetune.stream_of(batch)
    assert torch.equal(model.bert.stream(**stream), model.bert.stream(**stream))
    assert not torch.equal(learner.stream(**stream), learner.stream(**stream))  # the head's own dropout acts
    model.train()
    assert not torch.equal(model.bert.stream(**stream), model.bert.stream(**stream))


def test_random_takes_sizes_and_pieces_only(tiny):
    _, fresh = open_start(SequenceClassifier, tiny, replace(FAST, random=True, seed=7))
    _, learned = open_start(SequenceClassifier, tiny, FAST)
    assert fresh.config == learned.config
    assert not torch.equal(fresh.bert.embeddings.word, learned.bert.embeddings.word)
    assert torch.equal(learned.bert.embeddings.word, Bert.from_pretrained(tiny).embeddings.word)


def test_random_starts_from_every_family(tiny, tmp_path):
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    tokenizer = WordPiece.from_pretrained(tiny)
    config = DistilBertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes)
    SequenceClassifier(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    _, fresh = open_start(SequenceClassifier, tmp_path, replace(FAST, random=True))
    _, learned = open_start(SequenceClassifier, tmp_path, FAST)
    assert fresh.config == learned.config
    assert [name for name, _ in fresh.named_parameters()] == [name for name, _ in learned.named_parameters()]


def test_accumulation_changes_nothing_but_memory(tiny):
    calm = replace(FAST, epochs=2)
    still = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    found = []
    for parts in (1, 4):
        options = replace(calm, accumulate=parts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(finetune, "open_start", lambda *a, **k: open_start(*a, **k, **still))
            found.append(classify(tiny, TRAIN[:50], DEV, options=options).answers)
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_the_best_weights_are_kept_and_a_run_stops_when_it_gets_no_better(tiny, monkeypatch):
    """Scores are dictated: best at the second of many evaluations."""
    dictated, seen = iter([0.5, 0.9, 0.7, 0.8] + [0.6] * 50), []

    def scores(gold, predicted, classes):
        seen.append(next(dictated))
        return {"accuracy": seen[-1], "f1": 0.0, "mcc": 0.0}

    monkeypatch.setattr(finetune, "class_scores", scores)
    options = replace(FAST, evaluate_every=3, patience=2)
    result = classify(tiny, TRAIN, DEV, options=options)
    assert seen[:-1] == [0.5, 0.9, 0.7, 0.8]  # and once more for the weights kept
    assert result.kept_step == 6
    assert result.log[-1]["step"] == 12
    at_six = next(row for row in result.log if row["step"] == 6)
    assert result.scores["loss"] == pytest.approx(at_six["held_out_loss"], rel=1e-5)


def test_a_run_that_was_broken_off_ends_as_if_unbroken(tiny, tmp_path, monkeypatch):
    whole = classify(tiny, TRAIN, DEV, options=FAST, out=tmp_path / "whole")
    calls = iter(range(100))

    def dies(*arguments):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    real = finetune.class_scores
    monkeypatch.setattr(finetune, "class_scores", dies)
    with pytest.raises(KeyboardInterrupt):
        classify(tiny, TRAIN, DEV, options=FAST, out=tmp_path / "broken")
    monkeypatch.undo()
    again = classify(tiny, TRAIN, DEV, options=FAST, out=tmp_path / "broken")
    assert np.array_equal(again.answers, whole.answers)
    assert again.kept_step == whole.kept_step


def test_without_dev_the_last_weights_stay(tiny):
    result = classify(tiny, TRAIN, options=replace(FAST, epochs=1))
    assert (result.scores, result.answers, result.kept_step) == ({}, None, 8)


def test_pairs_and_numbers_as_labels(tiny):
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(80):
        a, b = rng.choice(["lamp", "boat"], 2)
        pairs.append(Text(f"the {a}", int(a == b), f"a {b}"))
    result = classify(tiny, pairs, pairs, ("differ", "same"), replace(FAST, epochs=10))
    assert result.scores["accuracy"] > 0.9
    row = encode_texts(result.tokenizer, pairs[:1], FAST)[0][0]
    assert sorted(set(row.types)) == [0, 1]


def test_batches_deal_out_every_example_once_an_epoch():
    lengths = np.random.default_rng(0).integers(3, 60, 100)
    batches = Batches(lengths, 16, seed=3)
    for epoch in range(2):
        dealt = [batches[step] for step in range(epoch * 7, epoch * 7 + 7)]
        assert sorted(i for batch in dealt for i in batch) == list(range(100))
        assert {len(batch) for batch in dealt} == {14, 15}
    assert batches[2] == Batches(lengths, 16, seed=3)[2]
    assert batches[2] != Batches(lengths, 16, seed=4)[2]
    assert batches[2] != batches[9]
    spread = np.mean([np.ptp(lengths[batches[step]]) for step in range(7)])
    assert spread < np.ptp(lengths) / 2  # neighbours of like length


def test_answering_goes_by_length_and_leaves_none_out():
    lengths = np.random.default_rng(0).integers(1, 9000, 300).tolist()
    dealt = list(finetune.by_length(lengths))
    assert sorted(i for some in dealt for i in some) == list(range(300))
    assert all(len(some) * max(lengths[i] for i in some) <= finetune.ANSWER_TOKENS or len(some) == 1 for some in dealt)
    assert list(finetune.by_length([])) == []


def test_class_weights_give_each_class_the_same_share(tiny):
    gold = [0] * 30 + [1] * 10 + [2] * 20
    weights = balanced(gold, 3)
    shares = [weights[k] * gold.count(k) for k in range(3)]
    assert shares == pytest.approx([20, 20, 20])
    _, model = open_start(SequenceClassifier, tiny, FAST, labels=("a", "b", "c"))
    model.eval()
    batch = text_batch(encode_texts(WordPiece.from_pretrained(tiny), TRAIN[:3], FAST))
    batch["labels"] = torch.tensor([0, 1, 2])
    (loss,), _ = ClassObjective("mean", weights).losses(model, batch)
    logp = model.stream(**finetune.stream_of(batch)).log_softmax(-1)
    assert loss.item() == pytest.approx(-sum(weights[k] * logp[k, k] for k in range(3)).item(), rel=1e-5)


@pytest.mark.parametrize("how", ["mean", "max"])
def test_long_texts_in_windows(tiny, how):
    """The logits of a text are the head's answer to its windows' pooled vectors, taken one by one."""
    options = replace(FAST, long="windows", max_length=8, stride=4, pool=how)
    tokenizer, model = open_start(SequenceClassifier, tiny, options, labels=("a", "b", "c"))
    model.eval()
    long, short = Text("the lamp was very warm and the boat was not lit in the river"), Text("a door")
    encoded = encode_texts(tokenizer, [long, short], options)
    assert len(encoded[0]) > 2
    assert len(encoded[1]) == 1
    assert all(len(row.ids) <= 8 for rows in encoded for row in rows)
    pieces = tokenizer(long.text).input_ids[1:-1]
    covered = [row.ids[1:-1] for row in encoded[0]]
    assert [*covered[0], *(i for part in covered[1:] for i in part[2:])] == pieces  # windows of 6 overlap by 2
    got = text_logits(model, text_batch(encoded), how)
    for rows, logits in zip(encoded, got, strict=True):
        vectors = torch.cat([model.bert(input_ids=torch.tensor([row.ids])).pooler_output for row in rows])
        pooled = vectors.mean(0) if how == "mean" else vectors.amax(0)
        torch.testing.assert_close(F.linear(pooled, model.classifier_weight, model.classifier_bias), logits)


def test_head_and_tail_reads_both_ends(tiny):
    options = replace(FAST, long="head+tail", max_length=10)
    tokenizer = WordPiece.from_pretrained(tiny)
    pieces = tokenizer("lamp door boat river lamp door boat river cold warm good bad").input_ids[1:-1]
    ((row,),) = encode_texts(tokenizer, [Text(tokenizer.decode(pieces))], options)
    assert row.ids == [tokenizer.cls_id, *pieces[:2], *pieces[-6:], tokenizer.sep_id]


def test_labels_in_order():
    assert class_names([Text("", "10"), Text("", "9"), Text("", "x"), Text("", "-1")]) == ("-1", "9", "10", "x")


def test_names_of_classes_may_be_numbers():
    """What a label means does not change from text to text, nor from training to dev."""
    some = [Text("", k) for k in range(5)]
    assert class_numbers(some, ("1", "2", "3", "4", "5"), "text") == [0, 1, 2, 3, 4]
    assert class_numbers(some[1:3], ("1", "2"), "text") == [0, 1]
    assert class_numbers(some[1:2], ("1", "2"), "text", some[:1]) == [1]
    assert class_numbers([Text("", "2"), Text("", 1)], ("1", "2"), "text") == [1, 0]
    for wrong in ([Text("", "a"), Text("", 1)], [Text("", 0), Text("", 1), Text("", 2)], [Text("", -1)]):
        with pytest.raises(ValueError, match="has the label"):
            class_numbers(wrong, ("a", "b"), "text")


@pytest.mark.parametrize(("count", "options", "fits"), [(100, (8, 8), 4), (5, (4, 4), 2)])
def test_no_part_of_a_batch_is_empty(tiny, count, options, fits):
    batch, accumulate = options
    options = replace(FAST, epochs=1, batch=batch, accumulate=accumulate)
    with pytest.raises(ValueError, match=f"take --accumulate {fits}$"):
        classify(tiny, TRAIN[:1] * count, labels=("bad", "good"), options=options)
    classify(tiny, TRAIN[:1] * count, labels=("bad", "good"), options=replace(options, accumulate=fits))


def test_short_memory_is_answered_with_three_things(tiny, monkeypatch):
    def hungry(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 PiB")

    monkeypatch.setattr(ClassObjective, "losses", hungry)
    with pytest.raises(TrainingStopped) as stopped:
        classify(tiny, TRAIN, options=FAST)
    for advice in ("--accumulate 2", "--max-length 8", "smaller --model", "--frozen", "FineTuneOptions"):
        assert advice in str(stopped.value)


def test_a_lack_of_the_processors_own_memory_too(tiny, monkeypatch):
    monkeypatch.setattr(ClassObjective, "losses", lambda *a: torch.empty(2**55))
    with pytest.raises(TrainingStopped, match="Three things to change"):
        classify(tiny, TRAIN, options=FAST)


def test_other_errors_stay_what_they_are(tiny, monkeypatch):
    def broken(*arguments):
        raise RuntimeError("something else")

    monkeypatch.setattr(ClassObjective, "losses", broken)
    with pytest.raises(RuntimeError, match="something else"):
        classify(tiny, TRAIN, options=FAST)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: classify(s, [Text("a", "x"), Text("b", "x")]), r"the labels \['x'\]"),
        (lambda s: classify(s, TRAIN, [Text("a", "ugly")]), "dev text 0 has the label 'ugly'; the classes are bad"),
        (lambda s: classify(s, [*TRAIN, Text("a")], labels=("bad", "good")), "training text 64 has the label None"),
        (lambda s: classify(s, [Text("a", 2)], labels=("bad", "good")), "label 2"),
        (
            lambda s: classify(s, TRAIN, options=FineTuneOptions()),
            "--max-length is 128, but .*tiny.* has 64 positions: lower it; --long windows",
        ),
        (
            lambda s: classify(s, TRAIN, DEV, options=replace(FAST, best_by="bleu")),
            "--best-by is 'bleu'; the scores here are accuracy",
        ),
        (lambda s: FineTuneOptions(batch=32, accumulate=3), "does not split"),
        (lambda s: FineTuneOptions(max_length=2), "one piece"),
        (lambda s: FineTuneOptions(epochs=0), "epochs is 0"),
        (lambda s: FineTuneOptions(epochs=float("inf")), "epochs is inf"),
        (lambda s: FineTuneOptions(warmup=100), "--warmup is 100; it has to be a share of the steps"),
        (lambda s: FineTuneOptions(patience=-3), "--patience is -3; it has to be 0 or above"),
        (lambda s: FineTuneOptions(evaluate_every=-1), "--evaluate-every is -1"),
        (lambda s: FineTuneOptions(precision="fp8"), "--precision is 'fp8'; it has to be one of"),
        (lambda s: FineTuneOptions(long="x"), "--long is 'x'"),
        (lambda s: FineTuneOptions(pool="min"), "--pool is 'min'"),
        (lambda s: classify(s, TRAIN, options=replace(FAST, pool="max")), "--pool max .* without --long windows"),
        (lambda s: classify(s, TRAIN[:2], labels=("bad", "good"), options=replace(FAST, accumulate=4)), "4 parts"),
    ],
)
def test_what_cannot_be_is_refused(tiny, call, says):
    with pytest.raises(ValueError, match=says):
        call(tiny)


@pytest.mark.parametrize("start", ["tpyo", "no/such/folder", "owner--name"])
def test_a_start_that_does_not_exist_is_said_to_be_none(start, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match=rf"{start} is no folder and no catalogue name \(course, .*minilm"):
        finetune.find_start(start)


def test_a_tensorflow_checkpoint_is_refused_with_the_way_out(tmp_path):
    for name in ("bert_config.json", "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001", "vocab.txt"):
        (tmp_path / name).write_text("")
    for start in (tmp_path, tmp_path / "bert_model.ckpt"):
        with pytest.raises(ValueError, match="TensorFlow checkpoint") as refused:
            classify(start, TRAIN, options=FAST)
        assert "from_tf=True" in str(refused.value)
        assert str(tmp_path / "bert_config.json") in str(refused.value)


def test_a_cased_vocabulary_stays_cased(tmp_path):
    cased = WordPiece.train(["Paris is Warm", "paris is warm"], 60, do_lower_case=False)
    cased.save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    assert finetune.open_tokenizer(tmp_path).tokenize("Paris") != finetune.open_tokenizer(tmp_path).tokenize("paris")


def test_what_a_tokenizer_says_of_itself_holds(tmp_path):
    """Lower-casing, though one piece has a capital: a vocabulary may have such, never to be used."""
    WordPiece([*SPECIAL, "paris", "Paris"]).save_pretrained(tmp_path)
    assert finetune.open_tokenizer(tmp_path).tokenize("Paris") == ["paris"]


def test_the_cased_vocabulary_of_bert_comes_alone_and_stays_cased(real_data):
    assert finetune.open_tokenizer(real_data / "cased_vocab").tokenize("Paris is Warm") == ["Paris", "is", "Warm"]


@pytest.mark.long
def test_pretraining_helps_on_real_sentences(movie_reviews):
    """The course's model against the same sizes at random, 800 film sentences, two epochs (0.69 against 0.52)."""
    from bert_minimal.train import data

    rows = [Text(text, label) for text, label in data.sentences()[:1200]]
    found = [
        classify("course", rows[:800], rows[800:], ("negative", "positive"), FineTuneOptions(epochs=2, random=random))
        for random in (False, True)
    ]
    assert found[0].scores["accuracy"] - found[1].scores["accuracy"] > 0.08
