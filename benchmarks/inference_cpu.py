"""Inference on a CPU: this package against transformers, side by side in one run.

    python benchmarks/inference_cpu.py            # about three minutes on two cores

Both compute in float32 without gradients, on the same random weights and the same padded batches; transformers
takes its "sdpa" attention. Each round runs every row with the one and then the other; medians over the rounds
are reported, so that whatever else the machine does hits both. Results go to inference_cpu.json in
benchmarks/results, and as a table to inference_cpu.md beside it, between two marks, for the README to include.
"""

import json
import platform
import statistics
import time
from pathlib import Path

import torch
import transformers
from machine import processor

from bert_minimal import Bert, BertConfig
from bert_minimal.checkpoint import state_for_file

RESULTS = Path(__file__).parent / "results"
ROUNDS = 9
MODELS = {
    "MiniLM-shaped, 6 × 384": BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    ),
    "base, 12 × 768": BertConfig.preset("base"),
}
BATCHES = {  # name: shortest, longest, sequences, skew
    "ragged, 5 to 66 tokens": (5, 66, 32, 2),
    "ragged, 20 to 256 tokens": (20, 256, 16, 2),
    "spread evenly, 5 to 66 tokens": (5, 66, 32, 1),
    "equal, 32 tokens": (32, 32, 32, 1),
    "equal, 128 tokens": (128, 128, 8, 1),
    "one text of 24 tokens": (24, 24, 1, 1),
}


def make_batch(shortest: int, longest: int, sequences: int, skew: int, vocab_size: int) -> dict[str, torch.Tensor]:
    """Lengths are a uniform number to the power of `skew`: 1 spreads them evenly, 2 makes most texts short, as
    real ones are (means of 25 and 85 tokens here). The longest is always there."""
    generator = torch.Generator().manual_seed(0)
    spread = (torch.rand(sequences, generator=generator) ** skew * (longest - shortest + 1)).long()
    lengths = (shortest + spread).clamp(max=longest)
    lengths[0] = longest
    mask = (torch.arange(longest) < lengths[:, None]).long()
    ids = torch.randint(1, vocab_size, (sequences, longest), generator=generator) * mask
    return {"input_ids": ids, "token_type_ids": torch.zeros_like(ids), "attention_mask": mask}


def seconds(model, batch) -> float:
    start = time.perf_counter()
    model(**batch)
    return time.perf_counter() - start


def check_equal(ours, theirs, batch) -> None:
    real = batch["attention_mask"].bool()
    off = (ours(**batch).last_hidden_state[real] - theirs(**batch).last_hidden_state[real]).abs().max()
    if off > 1e-4:
        raise AssertionError(f"the two models disagree by {off:.1e}: their times mean nothing")


def table(result: dict) -> str:
    machine = result["machine"]
    rows = [
        "<!-- inference_cpu: written by benchmarks/inference_cpu.py -->",
        "| model | batch | real tokens of padded | transformers | ours | times as fast |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        rows.append(
            f"| {row['model']} | {row['batch']} | {row['tokens']:,} of {row['padded']:,} "
            f"| {row['transformers_ms']:.1f} ms | {row['ours_ms']:.1f} ms | {row['ratio']:.2f} |"
        )
    rows.append("")
    rows.append(
        f"Medians of {ROUNDS} interleaved rounds, float32, {machine['threads']} threads, {machine['processor']}, "
        f"torch {machine['torch']}, transformers {machine['transformers']} (sdpa), {result['date']}."
    )
    rows.append("Ours computes the real tokens only, so the gain follows the share of padding.")
    return "\n".join([*rows, "<!-- /inference_cpu -->", ""])


@torch.no_grad()
def measure() -> list[dict]:
    """Every row once in each round, so that a disturbance of minutes spoils a round and not a row."""
    pairs = []
    for model_name, config in MODELS.items():
        ours = Bert(config).eval()
        hf_config = transformers.BertConfig(**config.to_hf(), attn_implementation="sdpa")
        theirs = transformers.BertModel(hf_config).eval()
        theirs.load_state_dict(state_for_file(ours))
        for batch_name, sizes in BATCHES.items():
            batch = make_batch(*sizes, config.vocab_size)
            check_equal(ours, theirs, batch)  # the warm-up too
            pairs.append((model_name, batch_name, ours, theirs, batch))
    times = [([], []) for _ in pairs]
    for number in range(ROUNDS):
        for (*_, ours, theirs, batch), (our_times, their_times) in zip(pairs, times, strict=True):
            their_times.append(seconds(theirs, batch))
            our_times.append(seconds(ours, batch))
        print(f"round {number + 1} of {ROUNDS}", flush=True)
    rows = []
    for (model_name, batch_name, _, _, batch), series in zip(pairs, times, strict=True):
        ours_s, theirs_s = map(statistics.median, series)
        rows.append(
            {
                "model": model_name,
                "batch": batch_name,
                "tokens": int(batch["attention_mask"].sum()),
                "padded": batch["attention_mask"].numel(),
                "ours_ms": round(ours_s * 1e3, 2),
                "transformers_ms": round(theirs_s * 1e3, 2),
                "ratio": round(theirs_s / ours_s, 3),
            }
        )
    return rows


def main() -> None:
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": {
            "processor": processor(),
            "threads": torch.get_num_threads(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "rounds": ROUNDS,
        "rows": measure(),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "inference_cpu.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    (RESULTS / "inference_cpu.md").write_text(table(result))
    print(table(result))


if __name__ == "__main__":
    main()
