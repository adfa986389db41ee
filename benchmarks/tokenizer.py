"""The tokenizer: encoding speed beside transformers' and `tokenizers`, and what the two training rules are worth.

    python benchmarks/tokenizer.py            # about six minutes on one core

Encoding: the same reviews with the real uncased vocabulary, ids compared first, one thread each, interleaved
rounds, medians of CPU seconds. Ours starts every round with an empty memory of runs, as a new process would.

Training: 8,000 pieces from a million words, on two corpora. Worth is tokens a word on text that was held out,
where a word is what WordPiece.split_words gives (so a comma is a word, of one token) and fewer is better. The
least count of a pair is what decides the ratio rule, so it is varied. Hugging Face's own trainer is shown beside.
"""

import json
import os
import platform
import random
import statistics
import time
from collections import Counter
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # before tokenizers is loaded: one thread, like ours

import tokenizers
import transformers
from machine import processor
from tokenizers import trainers

from bert_minimal import WordPiece
from bert_minimal.train.data import books, fetch, reviews
from bert_minimal.wordpiece import SPECIAL

RESULTS = Path(__file__).parent / "results"
ROUNDS = 7
TRAIN_ROUNDS = 3
TRAIN_WORDS, HELD_OUT_WORDS, VOCAB_SIZE = 1_000_000, 200_000, 8_000
TRAININGS = [  # rule, min_count; None is the default
    ("frequency", None),
    ("ratio", None),
    ("ratio", 1),
    ("ratio", 10),
    ("ratio", 20),
    ("ratio", 40),
    ("ratio", 80),
    ("ratio", 160),
]
RUST = "tokenizers' WordPieceTrainer"


def encoding() -> dict:
    texts = [text for text, _ in reviews()[:2000]]
    folder = fetch("minilm")
    rust = WordPiece.from_pretrained(folder).to_tokenizers()
    fast = transformers.BertTokenizerFast.from_pretrained(folder, do_lower_case=True)
    ways = {
        "ours": lambda: [row.input_ids for row in map(WordPiece.from_pretrained(folder), texts)],
        "transformers": lambda: fast(texts, return_offsets_mapping=True)["input_ids"],
        "tokenizers": lambda: [row.ids for row in rust.encode_batch(texts)],
    }
    expected = ways["tokenizers"]()  # also the warm-up
    for name, encode in ways.items():
        if encode() != expected:
            raise AssertionError(f"{name} gives other ids: its time would mean nothing")
    times = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, encode in ways.items():
            start = time.process_time()
            encode()
            times[name].append(time.process_time() - start)
    tokens = sum(map(len, expected))
    seconds = {name: statistics.median(series) for name, series in times.items()}
    return {
        "texts": len(texts),
        "words": sum(len(text.split()) for text in texts),
        "tokens": tokens,
        "rows": [
            {"who": name, "seconds": round(s, 3), "tokens_per_second": round(tokens / s)} for name, s in seconds.items()
        ],
    }


def take(texts: list[str], words: int) -> list[str]:
    """The first texts that together hold `words` words (by white space)."""
    taken, count = [], 0
    for text in texts:
        if count >= words:
            return taken
        taken.append(text)
        count += len(text.split())
    raise AssertionError(f"the corpus has {count} words, {words} are needed")


def corpora() -> dict[str, tuple[list[str], list[str]]]:
    """name -> (training texts, held-out texts). Reviews: other reviews. Books: other books, every sixth."""
    texts = [text for text, _ in reviews()]
    held_out = take(texts, HELD_OUT_WORDS)
    found = {"film reviews": (take(texts[len(held_out) :], TRAIN_WORDS), held_out)}
    train, held_out = [], []
    for i, name in enumerate(sorted(library := books())):
        (held_out if i % 6 == 0 else train).extend(library[name])
    for paragraphs in (train, held_out):
        random.Random(0).shuffle(paragraphs)
    found["books"] = (take(train, TRAIN_WORDS), take(held_out, HELD_OUT_WORDS))
    return found


def train_in_rust(texts: list[str]) -> WordPiece:
    rust = WordPiece(SPECIAL).to_tokenizers()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCAB_SIZE, special_tokens=list(SPECIAL), limit_alphabet=1000, show_progress=False
    )
    rust.train_from_iterator(texts, trainer)
    vocab = rust.get_vocab()
    return WordPiece(sorted(vocab, key=vocab.__getitem__))


def worth(tok: WordPiece, held_out: Counter) -> dict:
    pieces = {word: tok.encode_word(word) for word in held_out}
    words = held_out.total()
    tokens = sum(n * len(pieces[word]) for word, n in held_out.items())
    unknown = sum(n for word, n in held_out.items() if pieces[word] == ["[UNK]"])
    used = {piece for word in pieces.values() for piece in word}
    return {
        "pieces": len(tok),
        "pieces_used": len(used),
        "held_out_words": words,
        "unknown_words": unknown,
        "tokens_per_word": round(tokens / words, 4),
    }


def training() -> list[dict]:
    rows = []
    for corpus, (texts, held_out_texts) in corpora().items():
        splitter = WordPiece(SPECIAL)
        held_out = Counter(word for text in held_out_texts for word in splitter.split_words(text))
        ways = {(rule, least): None for rule, least in TRAININGS} | {(RUST, None): None}
        times: dict = {way: [] for way in ways}
        for round_number in range(TRAIN_ROUNDS):
            for rule, least in ways:
                if round_number and least is not None:
                    continue  # times are quoted for the defaults only
                start = time.process_time()
                rust = rule == RUST
                tok = train_in_rust(texts) if rust else WordPiece.train(texts, VOCAB_SIZE, rule, least)
                times[rule, least].append(time.process_time() - start)
                ways[rule, least] = tok
        for (rule, least), tok in ways.items():
            seconds = statistics.median(times[rule, least])
            row = {"corpus": corpus, "rule": rule, "min_count": least, "seconds": round(seconds, 2)}
            rows.append({**row, **worth(tok, held_out)})
            print(rows[-1], flush=True)
    return rows


def table(result: dict) -> str:
    machine, encoded = result["machine"], result["encoding"]
    rows = [
        "<!-- tokenizer: written by benchmarks/tokenizer.py -->",
        "| encoding, one thread | CPU seconds | tokens a second |",
        "|---|---|---|",
    ]
    language = {"ours": "ours (Python)", "transformers": "transformers (over Rust)", "tokenizers": "tokenizers (Rust)"}
    for row in encoded["rows"]:
        rows.append(f"| {language[row['who']]} | {row['seconds']:.2f} | {row['tokens_per_second']:,} |")
    rows += [
        "",
        f"{encoded['texts']:,} film reviews, {encoded['words']:,} words, {encoded['tokens']:,} tokens, the same ids "
        f"from all three, with offsets; medians of {result['rounds']} interleaved rounds. Ours keeps up because it "
        "remembers the runs of text that it has met; `tokenizers` left to itself takes all cores for a batch.",
        "",
        "| trained on | rule | least count of a pair | CPU seconds | pieces | used on held-out text | tokens a word |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["training"]:
        least = "default" if row["min_count"] is None else row["min_count"]
        least = "none" if (row["rule"], least) == ("ratio", 1) else least
        rows.append(
            f"| {row['corpus']} | {row['rule']} | {least} | {row['seconds']:.1f} | {row['pieces']:,} "
            f"| {row['pieces_used']:,} | {row['tokens_per_word']:.3f} |"
        )
    rows += [
        "",
        f"{VOCAB_SIZE:,} pieces asked for, from {TRAIN_WORDS:,} words; tokens a word on {HELD_OUT_WORDS:,} others, "
        "by white space, where each punctuation mark is one more word, of one token. "
        "The default is no least count for the frequency rule and one in 30,000 words for the ratio rule.",
        "",
        f"{machine['processor']}, Python {machine['python']}, tokenizers {machine['tokenizers']}, "
        f"transformers {machine['transformers']}, {result['date']}.",
        "<!-- /tokenizer -->",
        "",
    ]
    return "\n".join(rows)


def main() -> None:
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": {
            "processor": processor(),
            "threads": 1,
            "python": platform.python_version(),
            "tokenizers": tokenizers.__version__,
            "transformers": transformers.__version__,
        },
        "rounds": ROUNDS,
        "training_rounds": TRAIN_ROUNDS,
        "encoding": encoding(),
        "training": training(),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "tokenizer.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    (RESULTS / "tokenizer.md").write_text(table(result))
    print(table(result))


if __name__ == "__main__":
    main()
