"""What a student sees after getting unit 10 right: their own function on a real vocabulary and the small sets.

As in rewards.py: a few lines within two seconds, and never a download: the vocabulary is that of the course's own
model, the sets are in the package.
"""

import functools
from collections.abc import Callable

import torch

from bert_minimal.train import data, small
from bert_minimal.train.tagging import Sentence
from bert_minimal.wordpiece import WordPiece


@functools.cache
def tokenizer() -> WordPiece:
    return WordPiece.from_pretrained(data.fetch("course"))


def pieces_of(sentence: Sentence) -> tuple[list[str], list[int]]:
    """[CLS], the pieces, [SEP]; and the word that each belongs to."""
    cut = [tokenizer().tokenize(word) for word in sentence.words]
    pieces = ["[CLS]", *(piece for word in cut for piece in word), "[SEP]"]
    return pieces, [-1, *(w for w, word in enumerate(cut) for _ in word), -1]


def a_sentence_in_pieces(align_labels: Callable) -> None:
    sentence = next(s for s in small.sentences("test") if "Lamplighters" in s.words)
    pieces, word_ids = pieces_of(sentence)
    tags = sentence.tags or []
    names = sorted(set(tags))
    labels = align_labels([[names.index(tag) for tag in tags]], torch.tensor([word_ids]))[0].tolist()
    print("  What this made possible: labels for a model that reads pieces. By your function:")
    width = [max(len(piece), 6) for piece in pieces]
    print("    " + " ".join(piece.ljust(w) for piece, w in zip(pieces, width, strict=True)))
    said = ["·" if label == -100 else names[label] for label in labels]
    print("    " + " ".join(label.ljust(w) for label, w in zip(said, width, strict=True)))


def entities_of_the_small_set(find_entities: Callable) -> None:
    print("  What this made possible: names, not tags. In three sentences of the course's small set:")
    for sentence in small.sentences("test")[-20:-17]:
        found = find_entities(list(sentence.tags or []))
        print(f"    {' '.join(sentence.words)}")
        print("      " + ", ".join(f"{kind} “{' '.join(sentence.words[s:e])}”" for kind, s, e in found))


def a_list_of_names(entity_f1: Callable) -> None:
    from bert_minimal.train.scores import entities

    sentences = small.sentences("test")
    true = [entities(s.tags or []) for s in sentences]
    known = small.known_names()
    rules = {
        "a list of the training part's names": lambda words: small.look_up(words, known),
        "capital letters, all of them people": small.capitals,
    }
    print("  What this made possible: to say what a rule or a model is worth. On 150 sentences with new names:")
    for name, rule in rules.items():
        tags = [rule(s.words) for s in sentences]
        precision, recall, f1 = entity_f1(true, [entities(row) for row in tags])
        pairs = [(a, b) for s, row in zip(sentences, tags, strict=True) for a, b in zip(s.tags or [], row, strict=True)]
        accuracy = sum(a == b for a, b in pairs) / len(pairs)
        print(f"    {name:36} precision {precision:.2f}, recall {recall:.2f}, F1 {f1:.2f}; of the words {accuracy:.0%}")


def an_answer_found_in_pieces(span_targets: Callable) -> None:
    question = next(q for q in small.questions("test") if q.question == "What is the bridge of a violin made of?")
    row = tokenizer()(question.question, question.context)
    before = row.token_type_ids.index(1)
    is_context = [before <= i < len(row.input_ids) - 1 for i in range(len(row.input_ids))]
    print(f"  What this made possible: targets for training. “{question.question}”")
    for text, start in question.answers or ():
        first, last = span_targets(row.offset_mapping, is_context, start, start + len(text))
        pieces = [tokenizer().pieces[i] for i in row.input_ids[first : last + 1]]
        print(f"    “{text}”, characters {start} to {start + len(text)}: pieces {first} to {last}, {' '.join(pieces)}")


def a_reader_by_rule(best_span: Callable) -> None:
    """Scores of a rule, not of a model: sentences that share words with the question, and a year in them."""
    question = next(q for q in small.questions("test") if q.question == "When did the council vote on the bird?")
    row = tokenizer()(question.question, question.context)
    before = row.token_type_ids.index(1)
    pieces = [tokenizer().pieces[i] for i in row.input_ids]
    is_context = torch.tensor([before <= i < len(pieces) - 1 for i in range(len(pieces))])
    asked = {piece for piece in pieces[:before] if piece.isalpha() and len(piece) > 3}
    near = torch.tensor([sum(p in asked for p in pieces[max(before, i - 9) : i + 9]) for i in range(len(pieces))])
    digits = torch.tensor([float(piece.removeprefix("##").isdigit()) for piece in pieces])
    follows = torch.tensor([float(piece.startswith("##")) for piece in pieces])
    before_a_follower = torch.cat([follows[1:], torch.zeros(1)])
    scores = torch.stack([near + 4 * digits - 5 * follows, near + 4 * digits - 5 * before_a_follower], dim=1)
    first, last = best_span(scores, is_context, 4, 0.0)
    start, end = row.offset_mapping[first][0], row.offset_mapping[last][1]
    print("  What this made possible: an answer from scores. No model yet, only a rule that scores words near those of")
    print(f"    the question, and numbers. “{question.question}” Your span: “{question.context[start:end]}”.")
    print("    In the lesson a trained model gives the scores.")


def answers_people_would_accept(exact_match_and_f1: Callable) -> None:
    asked = small.questions("test")
    rules = {"never an answer": lambda q: "", "a number or a name": lambda q: small.shared_words(q.question, q.context)}
    print("  What this made possible: marks for answers. On the small set's 121 questions, by your function:")
    for name, rule in rules.items():
        rows = [exact_match_and_f1(rule(q), [text for text, _ in q.answers or ()]) for q in asked]
        match, f1 = (sum(row[k] for row in rows) / len(rows) for k in range(2))
        print(f"    {name:20} exact match {match:.2f}, F1 {f1:.2f}")
