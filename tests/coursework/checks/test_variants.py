"""Unit 11: its references against transformers and the package's own variants."""

import torch
import transformers

from bert_minimal import BertConfig, variants
from bert_minimal.heads import MaskedLM
from coursework.checks import variants as unit
from coursework.checks.engine import run_variant


def test_positions_are_those_of_transformers():
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 5, (6, 9), generator=generator)  # padding (1) anywhere
    embeddings = transformers.models.roberta.modeling_roberta.RobertaEmbeddings
    theirs = embeddings.create_position_ids_from_input_ids(ids, 1)
    assert unit._roberta_positions(ids, 1).equal(theirs)


def test_counts_are_those_of_the_models():
    for config in (
        BertConfig(),
        BertConfig.preset("tiny", vocab_size=77),
        variants.AlbertConfig(),
        variants.AlbertConfig(hidden_size=1024, num_attention_heads=16, intermediate_size=4096, num_hidden_layers=24),
    ):
        with torch.device("meta"):
            model = MaskedLM(config)
        asked = (config.vocab_size, config.hidden_size, config.intermediate_size, config.num_hidden_layers)
        shared = isinstance(config, variants.AlbertConfig)
        counted = unit._count_masked_lm(*asked, config.embedding_size, shared)
        assert counted == sum(p.numel() for p in model.parameters())


def test_narrow_embedding_is_alberts_without_its_norm():
    config = variants.AlbertConfig(
        vocab_size=19, embedding_size=4, hidden_size=6, num_attention_heads=2, intermediate_size=8
    )
    embeddings = variants.Albert(config).double().embeddings
    embeddings.normalise = lambda x: torch.nn.functional.linear(x, embeddings.widen_weight, embeddings.widen_bias)
    ids, zeros = torch.randint(0, 19, (2, 5)), torch.zeros(2, 5, dtype=torch.long)
    for table in (embeddings.position, embeddings.segment):
        table.data.zero_()
    weights = {
        "word": embeddings.word,
        "widen.weight": embeddings.widen_weight,
        "widen.bias": embeddings.widen_bias,
    }
    torch.testing.assert_close(unit._factorised_embedding(ids, weights), embeddings(ids, zeros, zeros))


def test_soft_loss_has_a_gradient_that_temperature_does_not_shrink():
    """Why T² belongs there (Hinton et al. 2015, section 2): for high T the gradient tends to a fixed size."""
    mine, wanted = torch.randn(3, 7, dtype=torch.float64), torch.randn(3, 7, dtype=torch.float64)
    hidden, mask, labels = torch.randn(1, 3, 4), torch.ones(1, 3, dtype=torch.long), torch.tensor([0, 1, 2])
    norms = []
    for T in (50.0, 100.0, 200.0):
        leaf = mine.clone().requires_grad_()
        unit._distillation_loss(leaf, wanted, labels, hidden, hidden, mask, T)[0].backward()
        norms.append(float(leaf.grad.norm()))
    assert max(norms) / min(norms) < 1.05


def test_no_odd_form_ends_the_judge():
    """Where lengths and keys are judged by the check itself, anything may stand in them."""
    row = torch.zeros(2)
    for exercise, odd in (
        (
            unit.sentence_order_pair,
            ([], (None, None), ([1], [2], None), ([[1]], None, "in order"), ([row], [row], row)),
        ),
        (unit.student_from_teacher, ({"layers.up_weight": [1]}, {"layers.x.up_weight": row, "layers.": row}, {1: row})),
    ):
        for value in odd:
            run = run_variant(exercise.name, lambda *given, value=value: value)
            assert not exercise.verdict(run, seed=1).passed
