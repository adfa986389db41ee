"""Text for pre-training: tokenised once, memory-mapped, and dealt out in batches of fixed shape.

A prepared corpus is a folder of plain numpy files, so that a rank or a worker opens it without reading it:

    index.json         vocabulary's sha256, counts, the files below
    shard-0000.npy     the pieces of every sentence, end to end, uint16 (uint32 for a vocabulary over 65,536)
    sentences.npy      (sentences + 1,) where each sentence begins in the shards laid end to end
    documents.npy      (documents + 1,) where each document begins among the sentences
    vocab.txt …        the tokenizer that made it

Batch number u of a run is a function of (seed, u) and of nothing else. So a run can go on at any step, and any
number of workers and ranks deals out the same batches: there is no shuffled list to store and no reader to
rewind. What replaces the shuffle is a walk in steps of the golden ratio, which visits the sentences evenly, in
an order in which neighbours in the text come far apart.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..heads import NO_LABEL
from ..masking import SELECTED, Masking
from ..wordpiece import WordPiece
from .pairs import fit, order_at, pair_at, split_sentences, target_length

SHARD_TOKENS = 100_000_000
TEXTS_AT_ONCE = 2_000  # documents handed to the Rust tokenizer together
SHORTEST = 5  # pieces of a pair: [CLS], two times [SEP], and one for each segment
LONGEST = 128  # pieces; a longer "sentence" (verse, lists, text without full stops) is cut there
GOLDEN = 11400714819323198485  # 2^64 / golden ratio, odd: its multiples mod 2^64 are spread evenly

# ---- preparing


def read_documents(source: str) -> Iterator[list[str]]:
    """Documents as lists of paragraphs, from a catalogue name, a folder of .txt files, or one .txt file.

    In a file a line that is empty ends a paragraph; in a single file two empty lines end a document, in a
    folder every file is a document. Raises FileNotFoundError if the source is none of these, ValueError if a file
    is not UTF-8.
    """
    from .data import RESOURCES, documents

    path = Path(source).expanduser()
    if source in RESOURCES:
        yield from documents(source)
    elif path.is_file():
        for document in read_text(path).split("\n\n\n"):
            yield [" ".join(p.split()) for p in document.split("\n\n") if p.strip()]
    elif path.is_dir():
        for file in sorted(path.rglob("*.txt")):
            yield [" ".join(p.split()) for p in read_text(file).split("\n\n") if p.strip()]
    else:
        raise FileNotFoundError(f"no text at {source!r}: give a .txt file, a folder of them, or {list(RESOURCES)}")


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, lines ended by \\n. Unlike files.read_file: one empty file in a folder is no error."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line, byte = error.object[: error.start].count(b"\n") + 1, error.object[error.start]
        what = f"{path}, line {line}: byte {byte:#04x} is not UTF-8"
        raise ValueError(f"{what}: save the file as UTF-8 (it may be Latin-1)") from error


def held_out(number: int, one_in: int) -> bool:
    """Whether document `number` of its source is kept for measuring: by a hash, so that it never changes."""
    return int.from_bytes(hashlib.sha256(str(number).encode()).digest()[:8], "big") % one_in == 0


def split_held_out(documents: Sequence, one_in: int) -> tuple[list, list]:
    """-> (to learn from, to measure on): about one document in `one_in`, at least one of each source."""
    kept = [number for number in range(len(documents)) if held_out(number, one_in)] or [len(documents) - 1]
    kept = set(kept)
    learn = [document for number, document in enumerate(documents) if number not in kept]
    return learn, [documents[number] for number in sorted(kept)]


def prepare(documents: Iterable[list[str]], tokenizer: WordPiece, folder: Path) -> "Corpus":
    """Tokenise documents (lists of paragraphs) into `folder`, in bulk through `tokenizers` (Rust).

    Documents without a sentence are left out. index.json is written last: a folder without it was broken off.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rust, dtype = tokenizer.to_tokenizers(), np.uint16 if len(tokenizer) <= 2**16 else np.uint32
    sentences, ends, shards, shard = [0], [0], [], []

    def write_shard() -> None:
        name = f"shard-{len(shards):04d}.npy"
        np.save(folder / name, np.concatenate(shard))
        shards.append(name)
        shard.clear()

    for batch in batched(documents, TEXTS_AT_ONCE):
        texts = [[s for paragraph in document for s in split_sentences(paragraph)] for document in batch]
        encoded = iter(rust.encode_batch_fast([s for document in texts for s in document], add_special_tokens=False))
        for document in texts:
            for _ in document:
                ids = np.array(next(encoded).ids, dtype)
                for start in range(0, len(ids), LONGEST):
                    shard.append(ids[start : start + LONGEST])
                    sentences.append(sentences[-1] + len(shard[-1]))
            if len(sentences) - 1 > ends[-1]:
                ends.append(len(sentences) - 1)
        if sum(map(len, shard)) >= SHARD_TOKENS:
            write_shard()
    if shard:
        write_shard()
    if not shards:
        raise ValueError("there is no text in these documents")
    np.save(folder / "sentences.npy", np.array(sentences, np.int64))
    np.save(folder / "documents.npy", np.array(ends, np.int64))
    tokenizer.save_pretrained(folder)
    index = dict(vocabulary=fingerprint(tokenizer), tokens=sentences[-1], sentences=len(sentences) - 1)
    index |= dict(documents=len(ends) - 1, shards=shards)
    write_whole(folder / "index.json", (json.dumps(index, indent=2) + "\n").encode())
    return Corpus(folder)


def batched(items: Iterable, size: int) -> Iterator[list]:
    """Lists of `size` items; the last may be shorter."""
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def fingerprint(tokenizer: WordPiece) -> str:
    """sha256 of the pieces in their order: two tokenizers with the same one mean the same by an id."""
    return hashlib.sha256("\n".join(tokenizer.pieces).encode()).hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """The file appears whole or not at all, even if the machine dies now: aside, synced, renamed."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with open(aside, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


# ---- what is asked for


def at_least(least: int, **options: float) -> None:
    """Raises ValueError if one of these options is less."""
    for name, value in options.items():
        if value < least:
            raise ValueError(f"--{name.replace('_', '-')} is {value}: give at least {least}")


def check_batches(sequences: int, length: int, seed: int, positions: int | None = None) -> None:
    """Raises ValueError if no batches can be made so, or none that a model of so many positions can read."""
    at_least(1, sequences=sequences)
    at_least(SHORTEST, length=length)
    at_least(0, seed=seed)
    if positions is not None and length > positions:
        raise ValueError(f"--length is {length}: the model reads {positions} pieces at most")


# ---- reading


class Document(Sequence):
    """The sentences of one document, each a view (numpy) into the memory-mapped pieces."""

    def __init__(self, corpus: "Corpus", first: int, last: int):
        self.corpus, self.first, self.last = corpus, first, last

    def __len__(self) -> int:
        return self.last - self.first

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self.corpus.sentence(self.first + i)


def mapped(path: Path) -> np.ndarray:
    """A view of the file on disk: pages are read when touched. As a plain array: slicing np.memmap is slow."""
    return np.load(path, mmap_mode="r").view(np.ndarray)


class Corpus(Sequence):
    """A prepared folder as a sequence of documents. Opens files, reads nothing."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        if not (self.folder / "index.json").is_file():
            raise FileNotFoundError(f"{folder} holds no prepared corpus (no index.json): prepare it again")
        self.index = json.loads((self.folder / "index.json").read_text(encoding="utf-8"))  # type: ignore[method-assign]  # hides Sequence.index, which nobody asks
        self.shards = [mapped(self.folder / name) for name in self.index["shards"]]
        self.shard_starts = np.cumsum([0, *map(len, self.shards)])
        self.sentences = mapped(self.folder / "sentences.npy")
        self.documents = mapped(self.folder / "documents.npy")

    def __len__(self) -> int:
        return len(self.documents) - 1

    def __getitem__(self, number: int) -> Document:  # type: ignore[override]  # slices are not needed
        if not 0 <= number < len(self):
            raise IndexError(number)
        return Document(self, int(self.documents[number]), int(self.documents[number + 1]))

    def sentence(self, number: int) -> np.ndarray:
        """Ids of a sentence, which are numbered through all documents: a view of the file."""
        start, end = self.sentences[number : number + 2].tolist()
        if len(self.shards) == 1:
            return self.shards[0][start:end]
        shard = int(np.searchsorted(self.shard_starts, start, "right")) - 1
        offset = self.shard_starts[shard]  # shards end where a document does, so no sentence is torn
        return self.shards[shard][start - offset : end - offset]

    def tokenizer(self) -> WordPiece:
        """The one whose pieces these are."""
        return WordPiece.from_pretrained(self.folder)


class PairBatches(torch.utils.data.Dataset):
    """Batch number u -> tensors of fixed shape, on the CPU; a DataLoader's workers each hold one of these.

    `sequences` × `length` tokens a batch; pairs are taken until the next would not fit, so a batch has a few
    more sequences than that where some are short, and under one sequence of padding at its end.

        input_ids, token_type_ids, position_ids   (N,) int32     N = sequences · length
        cu_seqlens                                (B + 1,) int32  B fixed; unused sequences are empty
        masked_positions, masked_labels           (M,)            M fixed; surplus places point to 0, label −100
        follows                                   (B,)            0 IsNext, 1 NotNext, −100 unused
        longest                                   (length,)       empty; only its shape says something
    """

    def __init__(
        self,
        corpus: Corpus,
        sequences: int,
        length: int,
        seed: int,
        whole_words: bool = False,
        task: Callable = pair_at,
    ):
        check_batches(sequences, length, seed)
        if len(corpus) < 2:
            raise ValueError("a corpus of one document has no other to draw a random B from: give at least two")
        if task not in (pair_at, order_at):
            raise ValueError("task is pairs.pair_at (next sentence) or pairs.order_at (sentence order)")
        self.corpus, self.length, self.seed, self.task = corpus, length, seed, task
        self.tokens = sequences * length
        expected = SELECTED * self.tokens
        # Two standard deviations above what is expected; of a batch with more, some are spared.
        self.masked = int(expected + 2 * expected**0.5) // 8 * 8 + 8
        tokenizer = corpus.tokenizer()
        self.masking = Masking(tokenizer, whole_words=whole_words)
        self.cls_id, self.sep_id, self.pad_id = tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id
        # The last sentence of a document has no next, so nothing begins there.
        self.has_next = np.ones(len(corpus.sentences) - 1, bool)
        self.has_next[np.asarray(corpus.documents[1:]) - 1] = False
        if not self.has_next.any():
            raise ValueError("every document has one sentence only: next sentences need at least two")

        # Room for as many sequences as may be needed: by the mean length of some, and a quarter more.
        rng = np.random.default_rng(seed)
        mean = sum(len(self.example(walk, rng)[0]) for walk in range(200)) / 200
        self.slots = int(1.25 * self.tokens / mean) + 2

    def start(self, walk: int) -> tuple[int, int]:
        """Place number `walk` of the golden-ratio walk -> (document, its sentence to begin with)."""
        while True:
            at = ((walk * GOLDEN + self.seed) % 2**64) * len(self.has_next) >> 64
            if self.has_next[at]:
                number = int(np.searchsorted(self.corpus.documents, at, "right")) - 1
                return number, at - int(self.corpus.documents[number])
            walk += 2**40  # a last sentence: step aside, far from the rest of the walk

    def example(self, walk: int, rng: np.random.Generator) -> tuple[np.ndarray, int, int]:
        """-> ids with [CLS] and [SEP], the length of the first segment, the label."""
        room = self.length - 3
        pair = self.task(self.corpus, *self.start(walk), target_length(room, rng), rng)
        a, b = fit(np.concatenate(pair.a), np.concatenate(pair.b), room, rng)  # type: ignore[arg-type]  # arrays slice too
        return np.concatenate([[self.cls_id], a, [self.sep_id], b, [self.sep_id]]), len(a) + 2, pair.label

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        rng = np.random.default_rng((self.seed, number))
        ids = np.full(self.tokens, self.pad_id, np.int64)
        types, positions = np.zeros(self.tokens, np.int32), np.zeros(self.tokens, np.int32)
        lengths, follows = np.zeros(self.slots, np.int32), np.full(self.slots, NO_LABEL, np.int64)
        used, slot = 0, 0
        while True:
            example, first, label = self.example(number * self.slots + slot, rng)
            end, slots_left = used + len(example), self.slots - slot - 1
            if end > self.tokens or self.tokens - end > slots_left * self.length:
                break  # full; or the padding that remains would no longer fit into the remaining slots
            ids[used:end], types[used + first : end] = example, 1
            positions[used:end] = np.arange(len(example))
            lengths[slot], follows[slot] = len(example), label
            used, slot = end, slot + 1
        while used < self.tokens:  # padding: sequences of their own, in which nobody is asked anything
            lengths[slot] = min(self.length, self.tokens - used)
            positions[used : used + lengths[slot]] = np.arange(lengths[slot])
            used, slot = used + lengths[slot], slot + 1

        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        corrupted, labels = self.masking(torch.from_numpy(ids), generator, at_most=self.masked)
        places = (labels != NO_LABEL).nonzero().squeeze(1)
        masked_positions = torch.zeros(self.masked, dtype=torch.int64)
        masked_labels = torch.full((self.masked,), NO_LABEL)
        masked_positions[: len(places)], masked_labels[: len(places)] = places, labels[places]
        return {
            "input_ids": corrupted.to(torch.int32),
            "token_type_ids": torch.from_numpy(types),
            "position_ids": torch.from_numpy(positions),
            "cu_seqlens": torch.from_numpy(np.concatenate([[0], lengths.cumsum()]).astype(np.int32)),
            "masked_positions": masked_positions,
            "masked_labels": masked_labels,
            "follows": torch.from_numpy(follows),
            # A Python number that goes wherever the batch goes, and that a compiled function knows to watch.
            "longest": torch.empty(self.length, dtype=torch.uint8),
        }


def loader(batches: torch.utils.data.Dataset, numbers: Sequence[int], workers: int) -> Iterator[dict[str, Tensor]]:
    """Batches with these numbers, in this order, made ahead by `workers` processes (0: made when asked)."""
    return iter(
        torch.utils.data.DataLoader(
            batches,
            batch_size=None,
            sampler=numbers,
            num_workers=workers,
            prefetch_factor=4 if workers else None,
            generator=torch.Generator(),  # else it draws from the global one, and dropout would differ
        )
    )
