"""A pre-training step (masked LM + next sentence), ours and transformers' side by side on one GPU.

    python benchmarks/pretrain_gpu.py --out results            # the table: results/pretrain_gpu.{json,md}
    torchrun --nproc-per-node 2 benchmarks/pretrain_gpu.py     # two GPUs against one: results/pretrain_gpus.json
    python benchmarks/pretrain_gpu.py --rows "base 32 x 128" --contenders ours "ours, F.dropout"

Each contender has a process of its own, so that nothing one compiles, caches or allocates helps or hinders
another. They compile at the same time, but the compiler's own timings of kernels, the warm-up and the timed steps
have the card for themselves; all are timed in turn, several rounds, and the median round counts. A step is the whole
of it: forward, backward, clipping to norm 1, AdamW (decay 0.01; torch's fused one for transformers).
Tokens are real ones, not padding. MFU is against a matrix product measured here.

transformers runs as its users run it: BertForPreTraining, sdpa, autocast to bf16, batches padded to the longest
row of the batch, with their mask (without it, compiled, it is slower even where no row needs padding; see the
contender "transformers compiled, no mask"). Dropout is the same on both sides and stands in the row. Data are random
ids: what they are changes no speed.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from pathlib import Path

import numpy as np
import torch

BATCHES, WARM, ROUNDS = 4, 6, 5
FILLERS = 16  # sequences of padding at the end of a stream; unused ones are empty

# name: preset, rows, shortest, longest, mean length, attention dropout (hidden dropout is 0.1 everywhere)
ROWS = {
    "base 256 x 128": ("base", 256, 128, 128, 128, 0.0),
    "base 64 x 512": ("base", 64, 512, 512, 512, 0.0),
    "base 512 ragged 5-66": ("base", 512, 5, 66, 25, 0.0),
    "base 64 ragged 20-512": ("base", 64, 20, 512, 240, 0.0),
    "base 32 x 128": ("base", 32, 128, 128, 128, 0.0),
    "base 256 x 128, attention dropout 0.1": ("base", 256, 128, 128, 128, 0.1),
    "base 512 ragged 5-66, attention dropout 0.1": ("base", 512, 5, 66, 25, 0.1),
    "large 64 x 128": ("large", 64, 128, 128, 128, 0.0),
}
CONTENDERS = ("transformers eager", "transformers compiled", "ours")
LIKE_WITH_LIKE = "Hidden dropout 0.1 on both sides; attention dropout 0 on both sides, or what the row says; bf16."


def lengths_of(row: tuple, seed: int) -> np.ndarray:
    _, rows, low, high, mean, _ = row
    if low == high:
        return np.full(rows, low)
    share = (mean - low) / (high - low)
    lengths = low + np.random.default_rng(seed).beta(4 * share, 4 * (1 - share), rows) * (high - low)
    lengths = lengths.round().astype(int)
    lengths[0] = high  # every batch has the same longest row, or transformers would compile again for each
    return lengths


def padded_batch(row: tuple, seed: int, vocabulary: int) -> dict[str, torch.Tensor]:
    """What transformers takes, on the CPU; 15 % of the tokens have labels."""
    lengths, generator = lengths_of(row, seed), torch.Generator().manual_seed(seed)
    shape = (len(lengths), int(lengths.max()))
    real = torch.arange(shape[1]) < torch.from_numpy(lengths)[:, None]
    ids = torch.randint(1000, vocabulary, shape, generator=generator) * real
    count = round(0.15 * int(real.sum()))
    chosen = real.flatten().nonzero().squeeze(1)
    chosen = chosen[torch.randperm(len(chosen), generator=generator)[:count]].sort().values
    labels = torch.full(shape, -100)
    labels.view(-1)[chosen] = ids.view(-1)[chosen]
    types = (torch.arange(shape[1]) >= torch.from_numpy(lengths)[:, None] // 2) & real
    follows = torch.randint(2, (len(lengths),), generator=generator)
    return dict(
        input_ids=ids,
        token_type_ids=types.long(),
        attention_mask=real.long(),
        labels=labels,
        next_sentence_label=follows,
    )


def stream_batch(padded: dict[str, torch.Tensor], tokens: int, masked: int) -> dict[str, torch.Tensor]:
    """The same as `corpus.PairBatches` gives it: `tokens` and `masked` are the fixed shapes."""
    real = padded["attention_mask"].bool()
    where, lengths = real.flatten().nonzero().squeeze(1), real.sum(1)
    fill, longest = tokens - len(where), real.shape[1]
    fillers = [longest] * (fill // longest) + [fill % longest]
    fillers += [0] * (FILLERS - len(fillers))
    labels = padded["labels"].flatten()[where]
    places = (labels != -100).nonzero().squeeze(1)
    extra = masked - len(places)
    pad = torch.nn.functional.pad
    return {
        "input_ids": pad(padded["input_ids"].flatten()[where], (0, fill)).int(),
        "token_type_ids": pad(padded["token_type_ids"].flatten()[where], (0, fill)).int(),
        "position_ids": pad(where % longest, (0, fill)).int(),
        "cu_seqlens": pad(torch.cat([lengths, torch.tensor(fillers)]).cumsum(0), (1, 0)).int(),
        "masked_positions": pad(places, (0, extra)),
        "masked_labels": pad(labels[places], (0, extra), value=-100),
        "follows": pad(padded["next_sentence_label"], (0, len(fillers)), value=-100),
        "longest": torch.empty(longest, dtype=torch.uint8),
    }


def transformers_step(row: tuple, how: str):
    from transformers import BertConfig, BertForPreTraining

    from bert_minimal.config import BertConfig as Ours

    sizes = Ours.preset(row[0], attention_probs_dropout_prob=row[5]).to_hf()
    config = BertConfig(**{k: v for k, v in sizes.items() if k not in ("model_type", "id2label", "label2id")})
    model = BertForPreTraining._from_config(config, attn_implementation="sdpa").cuda().train()
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    groups = [dict(params=decay, weight_decay=0.01), dict(params=plain, weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=1e-4, eps=1e-6, fused=True)
    batches = [{k: v.cuda() for k, v in padded_batch(row, seed, 30522).items()} for seed in range(BATCHES)]
    if "no mask" in how:
        for batch in batches:
            batch["attention_mask"] = None
    modes = {"eager": None, "compiled": "default", "compiled, CUDA graphs": "reduce-overhead"}
    mode = modes[how.removeprefix("transformers ").removesuffix(", no mask")]

    def loss_of(batch):
        with torch.autocast("cuda", torch.bfloat16):
            return model(**batch).loss

    loss_of = loss_of if mode is None else torch.compile(loss_of, dynamic=False, mode=mode)
    parameters = list(model.parameters())

    def step(number: int) -> torch.Tensor:
        if mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        loss = loss_of(batches[number % BATCHES])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def our_step(row: tuple, how: str):
    import bert_minimal.model
    from bert_minimal.config import BertConfig
    from bert_minimal.heads import PreTraining
    from bert_minimal.train.loop import Step, TrainOptions
    from bert_minimal.train.pretrain import PreTrainingObjective

    if "F.dropout" in how:
        bert_minimal.model.dropout = torch.nn.functional.dropout
    if "cudnn" in how:
        from torch.nn.attention import varlen

        varlen._should_use_cudnn = lambda device: True
    changes = dict(hidden_dropout_prob=0.0) if "no dropout" in how else {}
    model = PreTraining(BertConfig.preset(row[0], attention_probs_dropout_prob=row[5], **changes)).cuda().train()
    padded = [padded_batch(row, seed, 30522) for seed in range(BATCHES)]
    tokens = max(int(b["attention_mask"].sum()) for b in padded)
    masked = max(int((b["labels"] != -100).sum()) for b in padded)
    tokens, masked = -(-tokens // 128) * 128, -(-masked // 8) * 8
    batches = [{k: v.cuda() for k, v in stream_batch(b, tokens, masked).items()} for b in padded]
    options = TrainOptions(steps=1000, save_memory="save memory" in how)
    step = Step(model, PreTrainingObjective(), options, torch.device("cuda"))
    step.record = step.record and "no graph" not in how

    def one(number: int) -> torch.Tensor:
        step([batches[number % BATCHES]], 1e-4)
        return step.sums[0]

    one.close = step.close  # type: ignore[attr-defined]
    return one


def tune_alone(lock) -> None:
    """Inductor chooses between versions of a kernel by timing them. While a neighbour ran it chose badly: GELU's
    gradient, 64 x 512, then took 267 µs instead of 203, a hundredth and a half of the step."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    choose = CachingAutotuner.benchmark_all_configs

    def alone(self, *arguments, **options):
        with lock:
            return choose(self, *arguments, **options)

    CachingAutotuner.benchmark_all_configs = alone  # type: ignore[method-assign]


def contend(pipe, lock, name: str, row: tuple, steps: int, profile: bool) -> None:
    """A process: build, compile, and when asked warm up, and then time `steps` steps."""
    tune_alone(lock)
    torch.manual_seed(0)
    torch.cuda.set_stream(torch.cuda.Stream())
    start = time.perf_counter()
    torch.cuda.reset_peak_memory_stats()
    step = (our_step if name.startswith("ours") else transformers_step)(row, name)
    step(0)
    torch.cuda.synchronize()
    pipe.send("compiled")
    pipe.recv()
    for number in range(1, WARM):
        step(number)
    torch.cuda.synchronize()
    ready = dict(compile_seconds=time.perf_counter() - start, peak=torch.cuda.max_memory_allocated())
    torch.cuda.empty_cache()
    pipe.send(ready)
    while pipe.recv() == "go":
        for number in range(2):
            step(number)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for number in range(steps):
            loss = step(number)
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / steps
        if not torch.isfinite(loss).all():
            raise RuntimeError(f"{name}: the loss is {loss}")
        torch.cuda.empty_cache()
        pipe.send(seconds)
    if profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
            for number in range(3):
                step(number)
            torch.cuda.synchronize()
        print(name, row, trace.key_averages().table(sort_by="cuda_time_total", row_limit=60, max_name_column_width=70))
    pipe.close()


def flops_of(row: tuple) -> tuple[float, float]:
    """(real tokens, floating-point operations) of a step, mean over the batches."""
    from bert_minimal.config import BertConfig
    from bert_minimal.train.metrics import training_flops

    tokens, flops = [], []
    for seed in range(BATCHES):
        lengths = lengths_of(row, seed)
        n = int(lengths.sum())
        seen = float((lengths.astype(float) ** 2).sum() / n)
        tokens.append(n)
        flops.append(training_flops(BertConfig.preset(row[0]), n, seen, round(0.15 * n), len(lengths)))
    return statistics.mean(tokens), statistics.mean(flops)


def run_group(names: list[str], contenders: list[str], steps: int, peak: float, profile: bool) -> list[dict]:
    """Rows whose processes fit on the card together."""
    context = multiprocessing.get_context("spawn")
    running, lock = {}, context.Lock()
    for name in names:
        for contender in contenders:
            ours, theirs = context.Pipe()
            process = context.Process(target=contend, args=(theirs, lock, contender, ROWS[name], steps, profile))
            process.start()
            theirs.close()
            running[name, contender] = (process, ours, [])
    ready, found = {}, []
    for key, (_, pipe, _) in running.items():
        try:
            ready[key] = pipe.recv()
        except EOFError:
            found.append(dict(row=key[0], contender=key[1], failed="did not start; its error stands above"))
    for key in ready:
        running[key][1].send("warm up")
        ready[key] = running[key][1].recv()
    for _ in range(ROUNDS):
        for key in ready:
            _, pipe, seconds = running[key]
            pipe.send("go")
            seconds.append(pipe.recv())
    for key, (process, pipe, _) in running.items():
        if key in ready:
            pipe.send("stop")
        process.join()  # one after the other: a profile is of one contender alone on the card
    for (name, contender), started in ready.items():
        tokens, flops = flops_of(ROWS[name])
        rounds = running[name, contender][2]
        seconds = statistics.median(rounds)
        found.append(
            dict(
                row=name,
                contender=contender,
                tokens_per_second=tokens / seconds,
                ms=1000 * seconds,
                spread=(max(rounds) - min(rounds)) / seconds,
                mfu=flops / seconds / peak,
                peak_gib=started["peak"] / 2**30,
                start_seconds=started["compile_seconds"],
            )
        )
    return found


def several_gpus(steps: int, out: Path) -> None:
    """Under torchrun: our step on each GPU alone, then on all of them together; base, 256 x 128 a GPU.

    Rounds last some three seconds: at its power limit a card is by turns, each of about half a second, five per cent
    faster and slower, and cards that wait for one another always go at the slower pace.
    """
    from bert_minimal.train.loop import start_processes

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_stream(torch.cuda.Stream())
    name = "base 256 x 128"
    medians, alone, steps = {}, [0.0] * world, 5 * steps
    for how in ("alone", "together"):
        if how == "together":
            start_processes()
        step = our_step(ROWS[name], "ours")
        for number in range(WARM):
            step(number)
        rounds = []
        for _ in range(ROUNDS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for number in range(steps):
                step(number)
            torch.cuda.synchronize()
            rounds.append((time.perf_counter() - start) / steps)
        medians[how] = flops_of(ROWS[name])[0] / statistics.median(rounds)
        step.close()
        del step
        torch.cuda.empty_cache()
    torch.distributed.all_gather_object(alone, medians["alone"])
    if rank == 0:  # "one GPU" is the mean of them all, each alone: no two cards are equally fast
        found = dict(row=name, gpus=world, device=torch.cuda.get_device_name(), alone=alone)
        found |= dict(together=world * medians["together"], ratio=world * medians["together"] / statistics.mean(alone))
        (out / "pretrain_gpus.json").write_text(json.dumps(found, indent=2) + "\n")
        print(found, flush=True)
    torch.distributed.destroy_process_group()


def table(found: list[dict]) -> str:
    lines = ["| row | contender | run | k tok/s | ms a step | MFU | peak GiB | × transformers compiled | memory × |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for result in sorted(found, key=lambda r: (list(ROWS).index(r["row"]), r["run"])):
        named = f"| {result['row']} | {result['contender']} | {result['run']} |"
        if "failed" in result:
            lines.append(f"{named} failed | | | | | |")
            continue
        beside = [
            r for r in found if all(r[k] == result[k] for k in ("row", "run")) and r["contender"] == CONTENDERS[1]
        ]
        ratios = ["", ""]
        if beside and "failed" not in beside[0]:  # ratios compare within one run
            ratios = [f"{result['tokens_per_second'] / beside[0]['tokens_per_second']:.2f}"]
            ratios += [f"{result['peak_gib'] / beside[0]['peak_gib']:.2f}"]
        lines.append(
            f"{named} {result['tokens_per_second'] / 1000:.0f} | {result['ms']:.2f} | {result['mfu']:.1%} | "
            f"{result['peak_gib']:.1f} | {' | '.join(ratios)} |"
        )
    return "\n".join(lines)


def report(about: dict, found: list[dict], out: Path) -> None:
    (out / "pretrain_gpu.json").write_text(json.dumps({**about, "results": found}, indent=2) + "\n")
    head = ", ".join(f"{key} {value}" for key, value in about.items() if key != "note")
    words = [head, *([about["note"]] if "note" in about else []), LIKE_WITH_LIKE]
    (out / "pretrain_gpu.md").write_text("\n\n".join([*words, table(found)]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--profile", action="store_true", help="print each contender's kernels at the end")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--add", action="store_true", help="to the results that are there, as a run of its own")
    parser.add_argument("--together", type=int, default=1, help="rows compiled at once: quicker, more memory")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if "RANK" in os.environ:
        several_gpus(options.steps, options.out)
        return
    import transformers

    from bert_minimal.train.metrics import measured_peak

    peak = measured_peak(torch.device("cuda"), "bf16")
    about = dict(
        device=torch.cuda.get_device_name(),
        torch=torch.__version__,
        transformers=transformers.__version__,
        matmul_tflops=peak / 1e12,
        rounds=ROUNDS,
        steps=options.steps,
    )
    print(about, flush=True)
    found, run = [], 1
    if options.add:
        before = json.loads((options.out / "pretrain_gpu.json").read_text())
        about, found = {k: v for k, v in before.items() if k != "results"}, before["results"]
        run = 1 + max(result["run"] for result in found)
    for at in range(0, len(options.rows), options.together):
        results = run_group(
            options.rows[at : at + options.together], options.contenders, options.steps, peak, options.profile
        )
        print(*results, sep="\n", flush=True)
        found += [result | {"run": run} for result in results]
        report(about, found, options.out)
    print(table(found))


if __name__ == "__main__":
    main()
