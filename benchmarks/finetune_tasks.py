"""Tagging and question answering on real data: our fine-tuning beside transformers' model in a textbook loop.

    BERT_TEST_DATA=DATA python benchmarks/finetune_tasks.py --out results       # five seeds each

DATA holds wnut17/ (wnut17train.conll, emerging.test.annotated) and xquad/xquad.en.json. WNUT-17: train and test as
published, F1 of whole entities. XQuAD (English): the last quarter of its articles is the test, so no passage is on
both sides; F1 and exact match by SQuAD's rules.

Both sides start from the same weights (MiniLM, and a head that the seed draws), take the same examples in the same
order with the same schedule, in float32; they differ in everything else: padding, dropout's draws, the loop. Answers
are read out of both by the same code.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from machine import processor

from bert_minimal.checkpoint import state_for_file
from bert_minimal.heads import NO_LABEL, QuestionAnswering, TokenClassifier
from bert_minimal.train import answering, tagging
from bert_minimal.train.files import read_questions, read_sentences
from bert_minimal.train.finetune import Batches, FineTuneOptions, open_start, options_for_loop, stream_of, to_device
from bert_minimal.train.loop import learning_rate
from bert_minimal.train.scores import answer_scores, entity_scores, mean_sd

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WNUT = FineTuneOptions(epochs=4, batch=16, learning_rate=2e-4, max_length=128, precision="fp32")
XQUAD = FineTuneOptions(epochs=6, batch=16, learning_rate=2e-4, max_length=384, stride=128, precision="fp32")


class Theirs(torch.nn.Module):
    """transformers' model behind `stream`: what is laid end to end comes in, is padded, and goes out again flat."""

    def __init__(self, ours: TokenClassifier | QuestionAnswering):
        import transformers

        super().__init__()
        self.config = ours.config
        config = transformers.BertConfig(**ours.config.to_hf(), attn_implementation="sdpa")
        self.model = getattr(transformers, ours.hf_name)(config).to(DEVICE)
        self.model.load_state_dict(state_for_file(ours))

    def pad(self, flat: torch.Tensor, stream: dict[str, Any], fill: int = 0) -> torch.Tensor:
        """(N, …) -> (B, S, …)"""
        lengths = stream["cu_seqlens"].diff().tolist()
        return torch.nn.utils.rnn.pad_sequence(flat.split(lengths), batch_first=True, padding_value=fill)

    def forward(self, batch: dict[str, torch.Tensor]) -> Any:
        stream = stream_of(batch)
        inputs = {name: self.pad(stream[name], stream) for name in ("input_ids", "token_type_ids")}
        inputs["attention_mask"] = self.pad(torch.ones_like(stream["input_ids"]), stream)
        if "spans" in batch:
            inputs |= dict(zip(("start_positions", "end_positions"), batch["spans"].unbind(1), strict=True))
        elif "labels" in batch:
            inputs["labels"] = self.pad(batch["labels"], stream, NO_LABEL)
        return self.model(**inputs)

    def stream(self, **stream) -> torch.Tensor:
        """-> logits (N, K)"""
        names = ("input_ids", "token_type_ids", "position_ids", "cu_seqlens")
        longest = torch.empty(stream["max_seqlen"], dtype=torch.uint8)
        output = self({**{name: stream[name] for name in names}, "longest": longest})
        both = "start_logits" in output
        logits = torch.stack([output.start_logits, output.end_logits], -1) if both else output.logits
        return torch.cat([row[:n] for row, n in zip(logits, stream["cu_seqlens"].diff().tolist(), strict=True)])


def textbook(theirs: Theirs, lengths: list[int], make_batch: Callable, options: FineTuneOptions) -> None:
    """The loop as textbooks write it, on the examples and with the schedule that our loop takes."""
    dealt = Batches(lengths, options.batch, options.seed)
    schedule = options_for_loop(options, dealt.steps_an_epoch, DEVICE)
    matrices = [p for p in theirs.parameters() if p.ndim > 1]
    others = [p for p in theirs.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": schedule.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.999), eps=1e-6)
    torch.manual_seed(options.seed)
    theirs.train()
    for number in range(schedule.steps):
        theirs(to_device(make_batch(dealt[number]), theirs)).loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(number, schedule)
        optimizer.step()
        optimizer.zero_grad()
    theirs.eval()


def wnut(folder: Path, start: str, seed: int, small: int | None) -> dict[str, Callable[[], dict[str, float]]]:
    train = read_sentences(folder / "wnut17" / "wnut17train.conll").examples[:small]
    test = read_sentences(folder / "wnut17" / "emerging.test.annotated").examples[:small]
    options, gold = replace(WNUT, seed=seed), [sentence.tags for sentence in test]
    labels = tagging.tag_names(train, "first")
    numbers = {name: number for number, name in enumerate(labels)}

    def ours() -> dict[str, float]:
        result = tagging.tag(start, train, options=options)
        return entity_scores(gold, [tags for tags, _ in tagging.predict_tags(result, [s.words for s in test])])

    def theirs() -> dict[str, float]:
        tokenizer, model = open_start(TokenClassifier, start, options, labels=labels)
        side = Theirs(model)
        parts = [p for s in train for p in tagging.parts_of(tokenizer, s, options.max_length, numbers, "first")]
        lengths = [len(part.row.ids) for part in parts]
        textbook(side, lengths, lambda chosen: tagging.tag_batch([parts[i] for i in chosen]), options)
        asked = [tagging.parts_of(tokenizer, tagging.Sentence(s.words), options.max_length) for s in test]
        return entity_scores(gold, [tags for tags, _ in tagging.tags_of(side, asked)[0]])

    return {"ours": ours, "transformers": theirs}


def xquad(folder: Path, start: str, seed: int, small: int | None) -> dict[str, Callable[[], dict[str, float]]]:
    questions = read_questions(folder / "xquad" / "xquad.en.json").examples
    articles = json.loads((folder / "xquad" / "xquad.en.json").read_text())["data"]
    for_test = {p["context"] for article in articles[-len(articles) // 4 :] for p in article["paragraphs"]}
    train = [q for q in questions if q.context not in for_test][:small]
    test = [q for q in questions if q.context in for_test][:small]
    options, truths = replace(XQUAD, seed=seed), [[text for text, _ in q.answers] for q in test]

    def ours() -> dict[str, float]:
        result = answering.answer(start, train, options=options)
        return answer_scores(truths, [a.text for a in answering.predict_answers(result, test)])

    def theirs() -> dict[str, float]:
        tokenizer, model = open_start(QuestionAnswering, start, options)
        side = Theirs(model)
        learned = [window for q in train for window in answering.windows_of(tokenizer, q, options)]
        lengths = [len(window.row.ids) for window in learned]
        textbook(side, lengths, lambda chosen: answering.span_batch([learned[i] for i in chosen]), options)
        asked = [answering.windows_of(tokenizer, q._replace(answers=None), options) for q in test]
        scored, _ = answering.span_scores(side, asked)
        spans = [answering.best_answer(q, w, s) for q, w, s in zip(test, asked, scored, strict=True)]
        return answer_scores(truths, [span.text for span in spans])

    return {"ours": ours, "transformers": theirs}


TASKS = {"WNUT-17, entity F1": (wnut, "f1"), "XQuAD, F1": (xquad, "f1"), "XQuAD, exact match": (xquad, "exact")}


def table(result: dict) -> str:
    lines = ["<!-- finetune_tasks: written by benchmarks/finetune_tasks.py -->"]
    lines += ["| task | ours | transformers | difference, paired | its standard error |", "|---|---|---|---|---|"]
    for name, (task, score) in TASKS.items():
        rows = [row for row in result["rows"] if row["task"] == task.__name__]
        if len(rows) < 2:
            continue
        ours, theirs = ([row[side][score] for row in rows] for side in ("ours", "transformers"))
        cells = [f"{m:.1%} ± {sd:.1%}" for m, sd in map(mean_sd, (ours, theirs))]
        mean, sd = mean_sd([100 * (a - b) for a, b in zip(ours, theirs, strict=True)])
        lines.append(f"| {name} | {' | '.join(cells)} | {mean:+.2f} points | {sd / math.sqrt(len(rows)):.2f} |")
    seeds = len({row["seed"] for row in result["rows"]})
    lines += ["", f"Mean ± standard deviation over {seeds} seeds; MiniLM, float32; {result['machine']}."]
    return "\n".join([*lines, "<!-- /finetune_tasks -->", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--tasks", nargs="+", default=["wnut", "xquad"], choices=["wnut", "xquad"])
    parser.add_argument("--model", default="minilm", help="a catalogue name, a folder or a hub id")
    parser.add_argument("--small", type=int, help="so many examples only, to try this script")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args()
    if "BERT_TEST_DATA" not in os.environ:
        parser.error("set BERT_TEST_DATA to a folder that holds wnut17/ and xquad/")
    chosen.out.mkdir(parents=True, exist_ok=True)
    path, folder = chosen.out / "finetune_tasks.json", Path(os.environ["BERT_TEST_DATA"])
    import transformers

    card = torch.cuda.get_device_name() if DEVICE.type == "cuda" else processor()
    versions = f"torch {torch.__version__}, transformers {transformers.__version__} (sdpa)"
    result: dict = {"machine": f"{card}, {versions}, {time.strftime('%Y-%m-%d')}", "rows": []}
    if path.exists():
        before = json.loads(path.read_text())
        result["rows"] = before["rows"] if before["machine"] == result["machine"] else []
    for name in chosen.tasks:
        for seed in chosen.seeds:
            result["rows"] = [r for r in result["rows"] if (r["task"], r["seed"]) != (name, seed)]
            row: dict = {"task": name, "seed": seed}
            sides = list({"wnut": wnut, "xquad": xquad}[name](folder, chosen.model, seed, chosen.small).items())
            for side, run in sides if seed % 2 == 0 else sides[::-1]:
                began = time.perf_counter()
                row[side] = run()
                print(name, seed, side, row[side], f"{time.perf_counter() - began:.0f} s", flush=True)
            result["rows"].append(row)
            path.write_text(json.dumps(result, indent=1) + "\n")
    path.with_suffix(".md").write_text(table(result))
    print(table(result))


if __name__ == "__main__":
    main()
