"""Does our training learn what transformers' model learns? The same batches, three seeds, curves side by side.

    python benchmarks/loss_curves.py --corpus my-model/corpus --out results      # corpus: of an earlier `pretrain`

Each seed draws weights, batches and dropout; both sides start from the same weights and see the same batches in the
same order (`--own-start`: transformers draws its weights itself, from a normal distribution that is not cut off).
Ours is the course's training step as it is (stream, bf16 weights with float32 masters, recorded graph);
transformers' is BertForPreTraining under autocast with torch's AdamW, the same groups, clipping and schedule. What is
compared is the mean loss of a stretch of steps and, at the end, the loss on held-out documents, with the standard
deviation over seeds beside it.
"""

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch
from machine import processor

from bert_minimal.config import BertConfig
from bert_minimal.heads import NO_LABEL, PreTraining
from bert_minimal.train.corpus import Corpus, PairBatches, loader
from bert_minimal.train.loop import Step, TrainOptions, decay_groups, learning_rate
from bert_minimal.train.pretrain import MEASURE_FROM, PreTrainingObjective

LENGTH, HELD_OUT = 128, 20  # pieces; batches
SIDES = ("ours", "transformers")


def padded(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same sequences as transformers takes them; those that only fill the stream are left out."""
    ends = batch["cu_seqlens"].tolist()
    labels = torch.full_like(batch["input_ids"], NO_LABEL, dtype=torch.int64)
    asked = batch["masked_labels"] != NO_LABEL
    labels[batch["masked_positions"][asked]] = batch["masked_labels"][asked]
    real = (batch["follows"] != NO_LABEL).nonzero().flatten().tolist()
    rows = {"input_ids": batch["input_ids"].long(), "token_type_ids": batch["token_type_ids"].long(), "labels": labels}
    found = {name: torch.zeros(len(real), LENGTH, dtype=torch.int64) for name in (*rows, "attention_mask")}
    found["labels"] += NO_LABEL
    for row, number in enumerate(real):
        here = slice(ends[number], ends[number + 1])
        size = here.stop - here.start
        for name, values in rows.items():
            found[name][row, :size] = values[here]
        found["attention_mask"][row, :size] = 1
    return {**found, "next_sentence_label": batch["follows"][real]}


def run_ours(
    config: BertConfig, options: TrainOptions, dealt, held, device, own_start: bool
) -> tuple[list[float], float]:
    torch.manual_seed(options.seed)
    model, objective = PreTraining(config).to(device).train(), PreTrainingObjective()
    step, losses = Step(model, objective, options, device), []
    for number in range(options.steps):
        step([next(dealt)], learning_rate(number, options))
        if (number + 1) % options.log_every == 0:
            losses.append(step.read()["loss"])
    model.eval()
    with torch.no_grad():
        sums = torch.zeros(2, 2, device=device)
        for batch in held:
            batch = {name: value.to(device) for name, value in batch.items()}
            sums += torch.stack([objective.losses(model, batch)[0], objective.count(batch)])
    return losses, (sums[0] / sums[1]).sum().item()


def run_theirs(
    config: BertConfig, options: TrainOptions, dealt, held, device, own_start: bool
) -> tuple[list[float], float]:
    import transformers

    torch.manual_seed(options.seed)
    if own_start:
        sizes = {k: v for k, v in config.to_hf().items() if k not in ("model_type", "id2label", "label2id")}
        model = transformers.BertForPreTraining(transformers.BertConfig(**sizes, attn_implementation="sdpa"))
    else:
        with tempfile.TemporaryDirectory() as folder:
            PreTraining(config).save_pretrained(folder)
            model = transformers.BertForPreTraining.from_pretrained(folder, attn_implementation="sdpa")
    model = model.to(device).train()
    decay, plain = decay_groups(model)
    groups = [dict(params=decay, weight_decay=options.weight_decay), dict(params=plain, weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.999), eps=1e-6, fused=True)
    half = torch.autocast(device.type, torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext()
    losses, since = [], torch.zeros((), device=device)
    for number in range(options.steps):
        batch = {name: value.to(device) for name, value in padded(next(dealt)).items()}
        with half:
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(number, options)
        optimizer.step()
        optimizer.zero_grad()
        since += loss.detach() / options.log_every
        if (number + 1) % options.log_every == 0:
            losses.append(since.item())
            since.zero_()
    model.eval()
    sums = torch.zeros(2, 2)
    with torch.no_grad(), half:
        for batch in held:
            batch = {name: value.to(device) for name, value in padded(batch).items()}
            output = model(**batch)
            pairs = ((output.prediction_logits, "labels"), (output.seq_relationship_logits, "next_sentence_label"))
            for task, (logits, name) in enumerate(pairs):
                logits, labels = logits.float().flatten(0, -2), batch[name].flatten()
                loss = torch.nn.functional.cross_entropy(logits, labels, ignore_index=NO_LABEL, reduction="sum")
                sums[:, task] += torch.tensor([loss.item(), (labels != NO_LABEL).sum().item()])
    return losses, (sums[0] / sums[1]).sum().item()


def table(result: dict) -> str:
    """Mean ± sd over seeds at a few steps; the last column is paired, seed by seed."""
    runs, every = result["runs"], result["every"]
    last = len(runs[0]["ours"]["losses"])
    places = sorted({last // 8, last // 4, last // 2, last})
    rows = [(f"learned from, step {p * every}", lambda run, p=p: run["losses"][p - 1]) for p in places if p]
    rows += [("held out, at the end", lambda run: run["held_out"])]
    lines = ["<!-- loss_curves: written by benchmarks/loss_curves.py -->"]
    lines += ["| loss (nats) | ours | transformers | ours − transformers, paired |", "|---|---|---|---|"]
    for name, of in rows:
        sides = {side: [of(run[side]) for run in runs] for side in SIDES}
        differences = [a - b for a, b in zip(*sides.values(), strict=True)]
        cells = [f"{statistics.mean(x):.3f} ± {statistics.stdev(x):.3f}" for x in sides.values()]
        cells += [f"{statistics.mean(differences):+.3f} ± {statistics.stdev(differences):.3f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"{result['what']} {result['machine']}.", "<!-- /loss_curves -->"]
    return "\n".join(lines) + "\n"


def draw(result: dict, picture: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    for side, colour, line in (("transformers", "#E69F00", "-"), ("ours", "#0072B2", "--")):
        for number, run in enumerate(result["runs"]):
            losses = run[side]["losses"]
            steps = [result["every"] * (i + 1) for i in range(len(losses))]
            axis.plot(steps, losses, line, color=colour, linewidth=1, label=side if number == 0 else None)
    axis.set(xlabel="step", ylabel="loss, masked LM + next sentence (nats)", title=result["title"])
    axis.legend(frameon=False)
    figure.savefig(picture, dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="a folder with learn/ and held-out/")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1600)
    parser.add_argument("--sequences", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES)
    parser.add_argument("--own-start", action="store_true")
    parser.add_argument("--workers", type=int, default=max(0, min(12, (os.cpu_count() or 1) - 2)))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        torch.cuda.set_stream(torch.cuda.Stream())
    learn, held = (Corpus(chosen.corpus / part) for part in ("learn", "held-out"))
    width = chosen.width
    config = BertConfig(
        vocab_size=len(learn.tokenizer()), hidden_size=width, num_hidden_layers=chosen.layers,
        num_attention_heads=width // 64, intermediate_size=4 * width, max_position_embeddings=LENGTH,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    every = max(1, chosen.steps // 64)
    runs = []
    for seed in range(chosen.seeds):
        options = TrainOptions(chosen.steps, 1e-3, warmup=chosen.steps // 10, seed=seed, log_every=every)
        batches, measured = PairBatches(learn, chosen.sequences, LENGTH, seed), PairBatches(held, 64, LENGTH, 0)
        row: dict = {}
        for name in chosen.sides if seed % 2 == 0 else chosen.sides[::-1]:
            run = run_ours if name == "ours" else run_theirs
            dealt = loader(batches, range(options.steps), chosen.workers)
            asked = loader(measured, range(MEASURE_FROM, MEASURE_FROM + HELD_OUT), 0)
            began = time.perf_counter()
            losses, loss = run(config, options, dealt, asked, device, chosen.own_start)
            row[name] = {"losses": losses, "held_out": loss}
            print(f"seed {seed}, {name}: {losses[-1]:.3f}, held out {loss:.3f}, {time.perf_counter() - began:.0f} s",
                  flush=True)  # fmt: skip
        runs.append(row)
        precision = "bf16" if device.type == "cuda" else "float32"
        card = torch.cuda.get_device_name() if device.type == "cuda" else processor()
        result = {
            "title": f"The same batches, {len(runs)} seeds: {chosen.layers} layers × {width}",
            "what": f"{chosen.layers} layers × {width}, {chosen.steps:,} steps of {chosen.sequences * LENGTH:,} "
            f"tokens, 1e-3, {precision}; mean ± standard deviation over {len(runs)} seeds; held out: "
            f"{HELD_OUT * 64 * LENGTH:,} tokens of other documents.",
            "machine": f"{card}, torch {torch.__version__}", "every": every, "runs": runs,
        }  # fmt: skip
        (chosen.out / "loss_curves.json").write_text(json.dumps(result, indent=1) + "\n")
    if len(chosen.sides) < 2:
        return
    (chosen.out / "loss_curves.md").write_text(table(result))
    print(table(result))
    with contextlib.suppress(ModuleNotFoundError):  # a bare GPU machine has no matplotlib: draw it elsewhere
        draw(result, chosen.out / "loss_curves.png")


if __name__ == "__main__":
    main()
