"""What a student sees after getting unit 03 right: their own function on a real vocabulary and a real book.

As in rewards.py: a few lines within two seconds, and never a download.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from bert_minimal.wordpiece import WordPiece
from coursework.cast import CAST
from coursework.checks.rewards import if_fetched, shown_on

BOOK, TITLE = "carroll-alice.txt", "Alice in Wonderland"


class Real(NamedTuple):
    tokenizer: WordPiece  # BERT's uncased vocabulary
    paragraphs: list[str]  # of the book
    words: Counter  # of the book, letters alone


@functools.cache
def real() -> Real | None:
    """BERT's vocabulary and a book, or None if they have not been fetched before."""
    cache = if_fetched("minilm/vocab.txt", f"gutenberg/{BOOK}")
    if cache is None:
        return None
    tokenizer = WordPiece.from_pretrained(cache / "minilm")
    text = (cache / "gutenberg" / BOOK).read_text(encoding="utf-8", errors="replace")
    paragraphs = [" ".join(lines.split()) for lines in re.split(r"\n\s*\n", text) if lines.strip()]
    words = Counter(word for p in paragraphs for word in tokenizer.split_words(p) if word.isalpha())
    return Real(tokenizer, paragraphs, words)


@shown_on(real)
def a_book_in_words(split_words: Callable, found: Real) -> None:
    words = [word for paragraph in found.paragraphs for word in split_words(paragraph)]
    theirs = [word for paragraph in found.paragraphs for word in found.tokenizer.split_words(paragraph)]
    print(f"  What this made possible: a whole book, ready for a vocabulary. {TITLE}, by your function:")
    common = ", ".join(f"{word} ({n})" for word, n in Counter(words).most_common(5))
    print(f"    {len(words):,} words, {len(set(words)):,} different ones; the most frequent: {common}")
    same = "the same words" if words == theirs else "not quite the same words"
    print(f"    The course's own tokenizer finds {same}.")


@shown_on(real)
def best_pairs_of_a_book(pair_scores: Callable, found: Real) -> None:
    splits = {(word[0], *("##" + c for c in word[1:])): n for word, n in found.words.items()}
    scores = pair_scores(splits)
    best = sorted(scores, key=lambda pair: (-scores[pair], pair))[:5]
    print(f"  What this made possible: your scores of all {len(scores)} pairs of letters in {TITLE}. The best:")
    print("    " + "   ".join(f"{a} {b} {scores[a, b]:.2g}" for a, b in best))
    print("    Not “t ##h”, which is everywhere: letters that are rare, and hardly ever apart.")


@shown_on(real)
def trained_on_a_book(train: Callable, found: Real) -> None:
    counts = dict(found.words.most_common(120))
    vocabulary = train(counts, 40)
    print(f"  What this made possible: a vocabulary of your own, from the 120 most frequent words of {TITLE}.")
    print(f"    Your 40 merges end with {' '.join(vocabulary[-8:])}")


@shown_on(real)
def real_vocabulary(encode_word: Callable, found: Real) -> None:
    print("  What this made possible: BERT's own 30,522 pieces, walked by your function.")
    for word in ("violinmaker", "epistemology", "jabberwocky"):
        print(f"    {word} → {' '.join(encode_word(word, found.tokenizer.vocab))}")
    count = sum(n * len(encode_word(word, found.tokenizer.vocab)) for word, n in found.words.items())
    print(f"    {TITLE}: {found.words.total():,} words in {count:,} pieces, {count / found.words.total():.3f} a word.")


@shown_on(real)
def there_and_back(decode: Callable, found: Real) -> None:
    print("  What this made possible: reading what a model reads.")
    for text in (CAST["bridge"], "Didn't the café's SEAL cost $5?"):
        print(f"    {text}\n    → {decode(['[CLS]', *found.tokenizer.tokenize(text), '[SEP]'])}")
    print("    Capitals, accents and spacing are gone for good: BERT never saw them.")


@shown_on(real)
def long_pairs(truncate_pair: Callable, found: Real) -> None:
    a, b = (found.tokenizer.tokenize(found.paragraphs[i]) for i in (2, 4))
    print(f"  What this made possible: two paragraphs of {TITLE}, {len(a)} and {len(b)} pieces, in one row.")
    for most in (512, 128, 64):
        x, y = truncate_pair(a, b, most)
        print(f"    max_length {most}: {len(x)} + {len(y)} + 3 special tokens = {len(x) + len(y) + 3}")
