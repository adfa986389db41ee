"""WordPiece: text to pieces and back.

    tok = WordPiece.from_pretrained("bert-base-uncased")     # or a folder with vocab.txt
    tok("A café.", max_length=8)  ->  input_ids, token_type_ids, attention_mask, offset_mapping

The way down, a method a step: normalise, split_words, encode_word, __call__. Equal to transformers'
BertTokenizerFast, token by token and offset by offset, for every text made of the 281,706 code points that
data/unicode_table.json promises. Left out are 504 code points on which Unicode versions disagree (the table
has the answer of `tokenizers` 0.23 for these, another version may give another), 20 marks that Unicode may
swap with the mark beside them, which we don't, and everything that Unicode 14 had not yet assigned.

WordPiece: Schuster & Nakajima 2012; in BERT: Devlin et al. 2019, section 3, "Input/Output Representations".
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import index
from pathlib import Path

import torch

from .train.vocabulary import learn_pieces
from .unicode_table import Forms, table

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_WORD = 100  # characters; a longer word is one [UNK], as in Hugging Face's BERT
CACHE_SIZE = 100_000  # distinct runs of text that a tokenizer remembers
FIELDS = ("input_ids", "token_type_ids", "attention_mask", "offset_mapping")


@cache
def runs() -> re.Pattern:
    """Finds a special token, or a run without white space ("[" is always a word, so a run may end there)."""
    space = re.escape("".join(table()["space"]))
    return re.compile("|".join(map(re.escape, SPECIAL)) + rf"|\[|[^\[{space}]+")


class Encoding(dict):
    """A dict whose entries are attributes as well: `e["input_ids"]` is `e.input_ids`."""

    def __getattr__(self, name: str):
        if name in self:
            return self[name]
        raise AttributeError(f"an Encoding has {', '.join(self)}, not {name!r}")


class WordPiece:
    """A vocabulary, and the ways through it. `pieces[i]` has the id i; inside a word it starts with ##.

    strip_accents=None means: if lower-casing, as the uncased models do.
    """

    def __init__(self, pieces: Sequence[str], do_lower_case: bool = True, strip_accents: bool | None = None):
        self.pieces = list(pieces)
        self.vocab = {piece: i for i, piece in enumerate(self.pieces)}
        if twice := [i for i, piece in enumerate(self.pieces) if self.vocab[piece] != i]:
            piece = self.pieces[twice[0]]
            lines = f"lines {twice[0] + 1} and {self.vocab[piece] + 1}"
            raise ValueError(f"the vocabulary has {piece!r} in {lines}: mend it, or get the file again")
        if missing := [s for s in SPECIAL if s not in self.vocab]:
            raise ValueError(f"the vocabulary lacks {missing}; BERT's has {', '.join(SPECIAL)}")
        self.special_ids = [self.vocab[s] for s in SPECIAL]
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.special_ids
        self.do_lower_case, self.strip_accents = do_lower_case, strip_accents
        self._forms = Forms(do_lower_case, do_lower_case if strip_accents is None else strip_accents)
        self._longest = max(map(len, self.pieces))
        self._cache: dict[str, list[tuple[int, int, int]]] = {}

    def __len__(self) -> int:
        return len(self.pieces)

    # ---- files

    @classmethod
    def from_pretrained(cls, folder_or_id: str | Path, do_lower_case: bool | None = None) -> "WordPiece":
        """Read vocab.txt and, if there is one, tokenizer_config.json (do_lower_case, strip_accents).

        Without a tokenizer_config.json, text is lower-cased, as in transformers: for a cased vocabulary that
        comes alone say do_lower_case=False. Raises ValueError for a vocabulary that cannot be BERT's.
        """
        folder = Path(folder_or_id)
        if not folder.is_dir():
            if folder.exists() or str(folder_or_id).startswith((".", "/", "~")):
                raise ValueError(f"{folder_or_id} is no folder; give one that holds vocab.txt, or a hub id")
            from huggingface_hub import snapshot_download

            wanted = ["vocab.txt", "tokenizer_config.json"]
            folder = Path(snapshot_download(str(folder_or_id), allow_patterns=wanted))
        if not (folder / "vocab.txt").is_file():
            raise ValueError(f"{folder_or_id} needs a vocab.txt, one piece a line; a tokenizer.json won't do")
        path = folder / "tokenizer_config.json"
        options = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if options.get("tokenize_chinese_chars") is False:
            raise ValueError(f"{path} leaves Chinese unsplit, as BERT does not; open it with transformers")
        lower = options.get("do_lower_case", True) if do_lower_case is None else do_lower_case
        # Not splitlines(): pieces may be characters that it takes for line ends. -sig: some editors write a mark first.
        lines = (folder / "vocab.txt").read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
        return cls(lines, lower, options.get("strip_accents"))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write vocab.txt and tokenizer_config.json; transformers' AutoTokenizer opens the folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vocab.txt").write_text("\n".join(self.pieces) + "\n", encoding="utf-8", newline="\n")
        options = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.do_lower_case,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": True,
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(options, indent=2) + "\n", encoding="utf-8")

    def to_tokenizers(self):
        """The same tokenizer as a `tokenizers.Tokenizer` (Rust), for text in bulk."""
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

        rust = Tokenizer(models.WordPiece(self.vocab, unk_token="[UNK]", max_input_chars_per_word=MAX_WORD))
        rust.normalizer = normalizers.BertNormalizer(True, True, self.strip_accents, self.do_lower_case)
        rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        rust.post_processor = processors.BertProcessing(("[SEP]", self.sep_id), ("[CLS]", self.cls_id))
        rust.decoder = decoders.WordPiece(prefix="##", cleanup=False)
        rust.add_special_tokens(list(SPECIAL))
        return rust

    # ---- text to pieces

    def normalise(self, text: str) -> str:
        """White space becomes " ", control characters go, CJK stands alone; accents and capitals as asked."""
        return "".join(self._forms[c] for c in text)

    def split_words(self, text: str) -> list[str]:
        """The normalised words of `text`; each punctuation character is a word. Knows nothing of [MASK]."""
        return [word for word, _ in self._words(text)]

    def _words(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """(word, where in `text` each of its characters comes from)."""
        word, source, punctuation = "", [], table()["punctuation"]
        for i, c in enumerate(text):
            for x in self._forms[c]:
                if x != " " and x not in punctuation:
                    word += x
                    source.append(i)
                    continue
                if word:
                    yield word, source
                    word, source = "", []
                if x != " ":
                    yield x, [i]
        if word:
            yield word, source

    def encode_word(self, word: str) -> list[str]:
        """Longest match first. If one part is not in the vocabulary, the whole word is a single [UNK]."""
        if len(word) > MAX_WORD:
            return ["[UNK]"]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                if prefix + word[start:end] in self.vocab:
                    break
            else:
                return ["[UNK]"]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces

    def _encode_run(self, run: str) -> list[tuple[int, int, int]]:
        """(id, start, end) of each piece in a run without white space. Text repeats itself: runs are kept."""
        found = self._cache.get(run)
        if found is None:
            found = [(self.vocab[run], 0, len(run))] if run in SPECIAL else []
            for word, source in () if found else self._words(run):
                start = 0
                for piece in self.encode_word(word):
                    end = start + len(piece) - (2 if start else 0) if piece != "[UNK]" else len(word)
                    found.append((self.vocab[piece], source[start], source[end - 1] + 1))
                    start = end
            if len(self._cache) >= CACHE_SIZE:
                self._cache.clear()
            if len(run) <= MAX_WORD:
                self._cache[run] = found
        return found

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids and offsets of a text, without [CLS] and [SEP]. A special token inside it is kept whole."""
        if not isinstance(text, str):
            raise TypeError(f"text has to be a str or a list of str, not {type(text).__name__}: {text!r:.60}")
        ids, offsets = [], []
        for run in runs().finditer(text):
            at = run.start()
            for i, start, end in self._encode_run(run.group()):
                ids.append(i)
                offsets.append((at + start, at + end))
        return ids, offsets

    def tokenize(self, text: str) -> list[str]:
        """The pieces of `text`, as strings; no [CLS], no [SEP]."""
        return [self.pieces[i] for i in self._encode(text)[0]]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """Pieces joined to words, words by one space. Not the original: case, accents and spacing are gone.

        transformers' decode goes on to guess at spacing ("do not" even becomes "don't"); this doesn't.
        """
        ids = [index(i) for i in ids]
        if wrong := [i for i in ids if not 0 <= i < len(self)]:
            raise ValueError(f"no piece has the id {wrong[0]}; ids go from 0 to {len(self) - 1}")
        pieces = [self.pieces[i] for i in ids if not (skip_special_tokens and i in self.special_ids)]
        return "".join(p[2:] if p.startswith("##") and n else " " * (n > 0) + p for n, p in enumerate(pieces))

    def __call__(
        self,
        text: str | list[str],
        pair: str | list[str] | None = None,
        max_length: int | None = None,
        *,
        truncation: str = "longest_first",
        padding: bool | str = False,
        return_tensors: str | None = None,
    ) -> Encoding:
        """[CLS] text [SEP], or [CLS] text [SEP] pair [SEP]: BERT's input (Devlin et al. 2019, figure 2).

        text, pair: one string each, or lists of B strings. max_length counts [CLS] and [SEP]; what is longer
        loses its end (`truncated_lengths`). padding: True fills up to the longest row, "max_length" to that.
        Returns input_ids, token_type_ids (0; 1 for the pair and its [SEP]), attention_mask (1 real,
        0 padding), each (S,), or B of them; and offset_mapping (S, 2): the characters text[start:end] of each
        piece, (0, 0) for what is not in the text. As lists; return_tensors="pt" gives int64 tensors (B, S),
        offsets (B, S, 2).
        """
        many = isinstance(text, (list, tuple))
        if pair is not None and (many != isinstance(pair, (list, tuple)) or (many and len(text) != len(pair))):
            raise ValueError("text and pair have to be two strings, or two lists of the same length")
        if padding not in (False, True, "longest", "max_length") or return_tensors not in (None, "pt"):
            raise ValueError('padding is False, True, "longest" or "max_length"; return_tensors None or "pt"')
        if padding == "max_length" and max_length is None:
            raise ValueError('padding="max_length" needs max_length=…')
        texts: list = list(text) if many else [text]
        pairs: list = list(pair) if many and pair is not None else [pair] * len(texts)
        rows = [self._row(a, b, max_length, truncation) for a, b in zip(texts, pairs, strict=True)]
        if padding:
            longest = max((len(row["input_ids"]) for row in rows), default=0)
            width = max(longest, max_length or 0) if padding == "max_length" else longest
            for row in rows:
                for name, filler in zip(FIELDS, (self.pad_id, 0, 0, (0, 0)), strict=True):
                    row[name] += [filler] * (width - len(row[name]))
        if not many and return_tensors is None:
            return rows[0]
        batch = {name: [row[name] for row in rows] for name in FIELDS}
        if return_tensors is None:
            return Encoding(batch)
        if len({len(ids) for ids in batch["input_ids"]}) != 1:
            raise ValueError("a tensor needs rows of one length, and at least one row: say padding=True")
        return Encoding({name: torch.tensor(rows) for name, rows in batch.items()})

    def _row(self, text: str, pair: str | None, max_length: int | None, truncation: str) -> Encoding:
        a, a_offsets = self._encode(text)
        b, b_offsets = ([], []) if pair is None else self._encode(pair)
        if max_length is not None:
            room = max_length - (2 if pair is None else 3)
            keep_a, keep_b = truncated_lengths(len(a), len(b), room, truncation)
            a, a_offsets, b, b_offsets = a[:keep_a], a_offsets[:keep_a], b[:keep_b], b_offsets[:keep_b]
        ids, offsets, types = [self.cls_id, *a, self.sep_id], [(0, 0), *a_offsets, (0, 0)], [0] * (len(a) + 2)
        if pair is not None:
            ids += [*b, self.sep_id]
            offsets += [*b_offsets, (0, 0)]
            types += [1] * (len(b) + 1)
        return Encoding(zip(FIELDS, (ids, types, [1] * len(ids), offsets), strict=True))

    # ---- training

    @classmethod
    def train(
        cls,
        texts: Iterable[str] | Mapping[str, int],
        vocab_size: int,
        rule: str = "ratio",
        min_count: int | None = None,
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
    ) -> "WordPiece":
        """Learn a vocabulary from texts, or from a dict word -> count; `learn_pieces` has the rules and ties.

        rule="frequency" spends vocab_size better (fewer tokens a word, benchmarks/tokenizer.py); "ratio" is
        WordPiece as it is usually described. min_count=None: none for "frequency"; for "ratio" one in 30,000
        words. Fewer than vocab_size pieces come back when no pair is left that occurs min_count times.
        """
        if isinstance(texts, str):
            raise TypeError("texts is one str; give a list of texts, or a dict word -> count")
        splitter = cls(SPECIAL, do_lower_case, strip_accents)
        seen: Counter[str] = Counter()
        words: Counter[str] = Counter()
        for text, n in texts.items() if isinstance(texts, Mapping) else ((text, 1) for text in texts):
            for run in runs().findall(text):
                seen[run] += n
        for run, n in seen.items():
            for word in splitter.split_words(run) if run not in SPECIAL else ():
                if len(word) <= MAX_WORD:
                    words[word] += n
        if not words:
            raise ValueError("there is no word in texts; is it a generator that was used up?")
        if min_count is None:
            min_count = max(1, words.total() // 30_000) if rule == "ratio" else 1
        pieces = learn_pieces(words, vocab_size - len(SPECIAL), rule, min_count)
        return cls([*SPECIAL, *pieces], do_lower_case, strip_accents)


def truncated_lengths(a: int, b: int, room: int, how: str) -> tuple[int, int]:
    """How many of a and b pieces stay so that at most `room` do.

    "longest_first" takes pieces from the longer side until both fit. If both end up cut and `room` is odd,
    the odd piece goes to the side that was longer, and to the pair if they were equal, as in `tokenizers`
    (google-research/bert gives it to the first text then). Raises ValueError if it cannot be done.
    """
    if room < 0:
        raise ValueError("max_length has to be at least 2, the room for [CLS] and [SEP]; with a pair 3")
    if how not in ("longest_first", "only_first", "only_second"):
        raise ValueError(f'truncation is "longest_first", "only_first" or "only_second", not {how!r}')
    excess = a + b - room
    if excess <= 0:
        return a, b
    if how == "longest_first":
        small, large = room // 2, room - room // 2
        if a > b:
            return (room - b, b) if b <= small else (large, small)
        return (a, room - a) if a <= small else (small, large)
    if excess >= (a if how == "only_first" else b):
        raise ValueError(f'{how!r}: of {a} and {b} pieces {excess} have to go; use "longest_first"')
    return (a - excess, b) if how == "only_first" else (a, b - excess)
