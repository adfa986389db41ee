"""Labelled data in the files that people have: TSV, CSV, JSON lines; CoNLL; SQuAD.

    read_texts("train.tsv")       texts to classify; with a header or without
    read_sentences("train.conll") words with tags
    read_questions("train.json")  questions on passages, SQuAD 1.1 or 2.0

Each gives `Read`: the examples, where each stood, and what the user should be told of how the file was
understood. Nothing is dropped in silence: a row that can't be read raises `Malformed`, which names the file and
the lines, all of them (the first ten in full); what is skipped on purpose is counted in `Read.said`.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .answering import Question
from .finetune import Text
from .tagging import Sentence

TEXTS = ("text", "sentence", "sentence1", "sentence2", "question", "question1", "question2", "premise", "hypothesis")
TEXTS += ("text_a", "text_b", "text1", "text2", "pair", "review", "title", "description", "content")
LABELS = ("label", "gold_label", "class", "target", "sentiment", "category", "quality", "is_duplicate")
IDS = ("id", "index", "idx", "guid", "pairid", "pair_id")
SHOWN = 10  # malformed rows that are described one by one


class Malformed(ValueError):
    """A file that can't be read as it is; the message has a line for each place."""


@dataclass
class Read:
    """A file of examples, and where in it each of them stands: errors and results name that."""

    path: Path
    examples: list[Any]  # Text, Sentence or Question
    places: list[str]  # of each example: "line 7"
    ids: list[str]  # of each example: what the file says, or its number
    said: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)  # what each column of a table of texts is


def refuse(path: Path, problems: Sequence[tuple[str, str]]) -> None:
    """Raise Malformed if there are problems (place, what is wrong)."""
    if problems:
        lines = [f"{path}, {place}: {what}" for place, what in problems[:SHOWN]]
        if len(problems) > SHOWN:
            others = ", ".join(place for place, _ in problems[SHOWN : SHOWN + 40])
            lines.append(f"… and {len(problems) - SHOWN} more: {others}{' …' if len(problems) > SHOWN + 40 else ''}")
        raise Malformed("\n".join(lines))


def read_file(path: Path) -> str:
    """The text of a UTF-8 file. Raises Malformed naming the line where it stops being one."""
    raw = Path(path).read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        refuse(path, [("line 1", "the file is UTF-16 (as Excel's “Unicode text”): save it as UTF-8")])
    if raw[:2] == b"PK":
        refuse(path, [("line 1", "this is a zip archive or an Excel file: unpack it, or save it as CSV (UTF-8)")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        what = f"byte {raw[error.start]:#04x} is not UTF-8: save the file as UTF-8 (it may be Latin-1)"
        refuse(path, [(f"line {line}", what)])
    if "\0" in text:
        refuse(path, [(f"line {text[: text.index(chr(0))].count(chr(10)) + 1}", "holds a NUL character: no text file")])
    if not text.strip():
        refuse(path, [("line 1", "the file is empty")])
    return text


def lines_of(text: str) -> list[str]:
    """Lines end in \\n or \\r\\n and in nothing else: str.splitlines would also cut at U+2028 and its like."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


# ---- texts


def read_texts(path: str | Path, columns: Sequence[str] = (), labelled: bool = True, like: Sequence[str] = ()) -> Read:
    """Texts or pairs to classify, from .tsv (no quoting, as GLUE has it), .csv (quotes as in RFC 4180) or .jsonl.

    Args:
        columns: what each column is, "id", "label", "text", "pair" or "-" for one to pass over. Empty: by the
            header or the keys if there are any; without one, as in `like`, or four columns are the original
            repository's id, label, star, text, and in two or three the label is the column of single words with the
            fewest different ones. `Read.said` tells what was found.
        labelled: whether every row needs a label. False: for prediction; a label is taken where there is one.
        like: `Read.roles` of the training file; a file of as many columns without a header is read likewise.

    Raises Malformed as said above.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".tsv", ".csv", ".jsonl"):
        raise Malformed(
            f"{path}: texts are read from .tsv, .csv and .jsonl, not from {ending or 'a name without ending'}"
        )
    text = read_file(path)
    said: list[str] = []
    if ending == ".jsonl":
        roles, rows = rows_of_jsonl(path, text, labelled, said)
        said += ["its keys say what is what, not --columns"] if columns else []
    else:
        rows = rows_of_tsv(text) if ending == ".tsv" else rows_of_csv(path, text)
        if columns:
            roles, rows = list(columns), rows_below_header(rows, columns, labelled, said)
        else:
            roles, rows = roles_of(path, rows, like, labelled, said)
    found = texts_of(path, roles, rows, labelled, said)
    found.roles = [] if ending == ".jsonl" else roles  # keys have no order
    return found


def rows_of_tsv(text: str) -> list[tuple[str, list[str]]]:
    """Place and cells of each line. No quoting: what stands between two tabs is a cell."""
    return [(f"line {number}", line.split("\t")) for number, line in enumerate(lines_of(text), 1)]


def rows_of_csv(path: Path, text: str) -> list[tuple[str, list[str]]]:
    """Place and cells of each row, which may go over several lines. Raises Malformed for quotes that don't close."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, begins = [], 1
    usual = csv.field_size_limit(len(text))  # a whole book may be one text
    try:
        for row in reader:
            rows.append((f"line {begins}", row or [""]))
            begins = reader.line_num + 1
    except csv.Error as error:
        what = f"{error}: a quote that is opened here is not closed as CSV wants it; a quote inside is written twice"
        refuse(path, [(f"line {begins}", what)])
    finally:
        csv.field_size_limit(usual)
    return rows


def rows_of_jsonl(
    path: Path, text: str, labelled: bool, said: list[str]
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Objects; the keys of all of them count. Values are strings, or numbers for a label or an id."""
    entries = objects_of(path, text)
    keys = list(dict.fromkeys(key for _, entry in entries for key in entry))
    if left := [key for key in keys if not role_of(key)]:
        said.append(f"keys passed over: {', '.join(left)}")
    keys = [key for key in keys if role_of(key)]
    roles = roles_by_name(path, keys, labelled)
    optional = {
        key for key, role in zip(keys, roles, strict=True) if role == "id" or (role == "label" and not labelled)
    }
    found, problems = [], []
    for place, entry in entries:
        values = {key: "" if key in optional and entry.get(key) is None else entry.get(key) for key in keys}
        wrong = [key for key in keys if not isinstance(values[key], str | int) or isinstance(values[key], bool)]
        if wrong:
            kinds = ", ".join(f"{k!r} is {type(entry[k]).__name__ if k in entry else 'missing'}" for k in wrong)
            problems.append((place, f"{kinds}; strings are wanted, or whole numbers for labels"))
            continue
        found.append((place, [str(values[key]) for key in keys]))
    refuse(path, problems)
    return roles, found


def objects_of(path: Path, text: str) -> list[tuple[str, dict]]:
    """The object in each line."""
    found, problems = [], []
    for number, line in enumerate(lines_of(text), 1):
        place = f"line {number}"
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            what = f"no JSON: {error.msg} at column {error.colno}" if line.strip() else "an empty line"
            problems.append((place, what))
            continue
        if isinstance(entry, dict):
            found.append((place, entry))
        else:
            problems.append((place, f"one object a line is wanted, not {type(entry).__name__}"))
    refuse(path, problems)
    return found


def role_of(name: str) -> str:
    """What a column of this name is: "text", "label", "id", or "" for anything else."""
    name = name.strip().lower()
    return next((role for role, names in (("text", TEXTS), ("label", LABELS), ("id", IDS)) if name in names), "")


def roles_by_name(path: Path, names: Sequence[str], labelled: bool) -> list[str]:
    """The first text column is the text, the second its pair. Raises Malformed if the names don't suffice."""
    roles = [role_of(name) or "-" for name in names]
    texts = [at for at, role in enumerate(roles) if role == "text"]
    if not texts or len(texts) > 2:
        refuse(
            path,
            [("line 1", f"{len(texts)} columns named like texts ({', '.join(names)}); one or two of {TEXTS[:4]} …")],
        )
    if len(texts) == 2:
        roles[texts[1]] = "pair"
    for role in ("label", "id"):
        if roles.count(role) > 1:
            refuse(path, [("line 1", f"several columns named like a {role} ({', '.join(names)}): rename all but one")])
    if labelled and "label" not in roles:
        refuse(path, [("line 1", f"no column named {', '.join(LABELS[:3])} … among {', '.join(names)}")])
    return roles


def names_in_first_line(rows: list[tuple[str, list[str]]]) -> list[str]:
    """The role that each cell of line 1 names, or "". A class may be called "target": no name that comes again."""
    first, *others = (row for _, row in rows)
    return ["" if any(row[at : at + 1] == [name] for row in others) else role_of(name) for at, name in enumerate(first)]


def rows_below_header(
    rows: list[tuple[str, list[str]]], columns: Sequence[str], labelled: bool, said: list[str]
) -> list[tuple[str, list[str]]]:
    """The rows without the header, if line 1 names a column as `columns` has it. ValueError for impossible columns."""
    if set(columns) - {"id", "label", "text", "pair", "-"} or "text" not in columns:
        raise ValueError(f'--columns are "id", "label", "text", "pair" and "-", one of them "text"; not {columns}')
    if twice := {role for role in columns if role != "-" and columns.count(role) > 1}:
        raise ValueError(
            f'--columns names {", ".join(sorted(twice))} twice; the second text of a pair is called "pair"'
        )
    if labelled and "label" not in columns:
        raise ValueError(f'--columns {" ".join(columns)} names no "label", which training needs')
    wanted = ["text" if role == "pair" else role for role in columns]
    if any(name == role for name, role in zip(names_in_first_line(rows), wanted, strict=False)):
        said.append(f"line 1 is taken as a header: {', '.join(rows[0][1])}")
        return rows[1:]
    return rows


def roles_of(
    path: Path, rows: list[tuple[str, list[str]]], like: Sequence[str], labelled: bool, said: list[str]
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """What each column is, and the rows without the header."""
    first, say = rows[0][1], "say what each column is, as in --columns label text"
    if any(role_of(name) == "text" for name in first):
        if len(set(first)) < len(first):
            refuse(path, [("line 1", f"two columns of the same name: {', '.join(first)}")])
        roles = roles_by_name(path, first, labelled)
        if left := [name for name, role in zip(first, roles, strict=True) if role == "-"]:
            said.append(f"columns passed over: {', '.join(left)}")
        return roles, rows[1:]
    if any(names_in_first_line(rows)):
        refuse(path, [("line 1", f"a header in which no column is named like a text ({', '.join(first)}): {say}")])
    width = Counter(len(row) for _, row in rows).most_common(1)[0][0]
    as_before = len(like) == width
    roles = list(like) if as_before else guess_roles([row for _, row in rows if len(row) == width], width, labelled)
    if not roles:
        shown = " | ".join(cell[:30] for cell in first)
        refuse(path, [("line 1", f"no header, and no telling what the {width} columns are ({shown}): {say}")])
    said.append(f"no header; the columns are taken as {', '.join(roles)}{', as in training' if as_before else ''}")
    return roles, rows


def guess_roles(rows: list[list[str]], width: int, labelled: bool) -> list[str]:
    """[] if there is no telling."""
    different = [len({row[at] for row in rows}) for at in range(width)]
    single = [at for at in range(width) if all(len(row[at].split()) <= 1 for row in rows)]
    if width == 4:
        return ["id", "label", "-", "text"]
    if not labelled and width == 2:
        if 0 in single and different[0] == len(rows):
            return ["id", "text"]
        return [] if single else ["text", "pair"]  # single words may be labels
    if not labelled:
        return ["text"] if width == 1 else []
    fewest = [at for at in single if different[at] == min(different[at] for at in single)]
    if width not in (2, 3) or len(fewest) != 1 or different[fewest[0]] == len(rows) > 1:
        return []
    others = iter(["text", "pair"])
    return ["label" if at == fewest[0] else next(others) for at in range(width)]


def texts_of(path: Path, roles: list[str], rows: list[tuple[str, list[str]]], labelled: bool, said: list[str]) -> Read:
    """Rows of cells -> texts, by what each column is. Raises Malformed, naming the places, for rows that are none."""
    found, problems = Read(path, [], [], [], said), []
    if not rows:
        problems.append(("line 2", "nothing follows the header"))
    for place, row in rows:
        if len(row) != len(roles):
            what = (
                "an empty line" if row == [""] else f"{len(row)} columns, {len(roles)} are wanted ({', '.join(roles)})"
            )
            problems.append((place, what))
            continue
        cells = {role: cell.strip() for role, cell in zip(roles, row, strict=True)}
        optional = {"-", "id"} if labelled else {"-", "id", "label"}
        empty = [role for role, cell in cells.items() if not cell and role not in optional]
        if empty:
            problems.append((place, f"the {' and the '.join(empty)} {'is' if len(empty) == 1 else 'are'} empty"))
            continue
        found.examples.append(Text(cells["text"], cells.get("label") or None, cells.get("pair")))
        found.places.append(place)
        found.ids.append(cells.get("id") or str(len(found.ids)))
    labels = {text.label for text in found.examples}
    if not problems and labelled and len(labels) > 20 and 2 * len(labels) > len(found.examples):
        shown = ", ".join(sorted(label[:20] for label in labels)[:3])
        problems.append(("line 1", f"{len(labels)} labels in {len(found.examples)} rows ({shown} …): wrong column?"))
    refuse(path, problems)
    return found


def check_classes(read: Read, labels: Sequence[str]) -> None:
    """Raises Malformed naming every row of another file whose label training does not know."""
    problems = [
        (place, f"the label {text.label!r} does not occur in training ({', '.join(labels)})")
        for text, place in zip(read.examples, read.places, strict=True)
        if text.label is not None and text.label not in labels
    ]
    refuse(read.path, problems)


# ---- words with tags


def read_sentences(path: str | Path, labelled: bool = True) -> Read:
    """Sentences of a CoNLL file: a word a line, an empty line after each sentence, the tag in the last column.

    Columns are cut at tabs if the first line has one, else at spaces. Tags are O, B-TYPE, I-TYPE; a file without
    any B- (the IO scheme) is taken as it is, and said. Lines -DOCSTART- are counted and passed over.
    labelled=False: one column, words only, will do.
    """
    path = Path(path)
    lines = lines_of(read_file(path))
    by_tab = "\t" in next(line for line in lines if line.strip())
    found, problems = Read(path, [], [], []), []
    words, tags, begins, width, documents = [], [], 0, 0, 0
    for number, line in enumerate([*lines, ""], 1):
        place = f"line {number}"
        if not line.strip():
            if words:
                found.examples.append(Sentence(words, tags if tags else None))
                found.places.append(f"line {begins}")
                found.ids.append(str(len(found.ids)))
            words, tags = [], []
            continue
        cells = line.split("\t") if by_tab else line.split(" ")
        if cells[0] == "-DOCSTART-":
            documents += 1
            continue
        width = width or len(cells)
        problem = problem_of_word(cells, width, labelled, by_tab)
        if problem:
            problems.append((place, problem))
            continue
        begins = begins if words else number
        words.append(cells[0])
        tags += [cells[-1]] if width > 1 else []
    refuse(path, problems or ([] if found.examples else [("line 1", "no sentence in it")]))
    if documents:
        found.said.append(f"{documents} lines -DOCSTART- passed over")
    kinds = {tag[0] for sentence in found.examples for tag in sentence.tags or ()}
    if "I" in kinds and "B" not in kinds:
        found.said.append("no B- tag (IO scheme): neighbouring entities of one type count as one")
    return found


def problem_of_word(cells: list[str], width: int, labelled: bool, by_tab: bool) -> str:
    """What is wrong with a line of a CoNLL file; "" if nothing is."""
    if len(cells) != width:
        other = (
            "" if len(cells) > 1 or width == 1 else f"; columns are cut at {'tabs' if by_tab else 'single spaces'} here"
        )
        return f"{len(cells)} columns, the first line has {width}{other}"
    if not cells[0].strip():
        return "the word is empty"
    if width == 1:
        return "there is a word and no tag" if labelled else ""
    tag = cells[-1]
    if tag != "O" and not (tag[:2] in ("B-", "I-") and tag[2:].strip()):
        return f"the tag is {tag!r}; O, B-TYPE or I-TYPE is wanted (other schemes, as BIOES: convert first)"
    return ""


# ---- questions


def read_questions(path: str | Path, labelled: bool = True) -> Read:
    """Questions of a SQuAD file, 1.1 or 2.0: data[…].paragraphs[…].qas[…].

    An answer has to stand where answer_start says. labelled=False: questions without answers will do.
    """
    path = Path(path)
    text = read_file(path)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        refuse(path, [(f"line {error.lineno}", f"no JSON: {error.msg} at column {error.colno}")])
    if not isinstance(content, dict) or "data" not in content:
        refuse(path, [("line 1", 'no SQuAD file: an object with "data" is wanted, a list of articles')])
    found, problems, seen = Read(path, [], [], []), [], {}

    def entries(holder: Any, key: str, where: str) -> list[tuple[str, Any]]:
        items = holder.get(key) if isinstance(holder, dict) else None
        if not isinstance(items, list):
            problems.append((where or "line 1", f"{key!r} has to be a list here"))
            return []
        return [(f"{where}{'.' if where else ''}{key}[{i}]", item) for i, item in enumerate(items)]

    for article_place, article in entries(content, "data", ""):
        for paragraph_place, paragraph in entries(article, "paragraphs", article_place):
            context = paragraph.get("context") if isinstance(paragraph, dict) else None
            if not isinstance(context, str) or not context.strip():
                problems.append((paragraph_place, "'context' has to be a text"))
                continue
            for place, entry in entries(paragraph, "qas", paragraph_place):
                problem = problem_of_question(entry, context, labelled)
                if not problem and entry["id"] in seen:
                    problem = f"the id {entry['id']!r} stands at {seen[entry['id']]} already"
                if problem:
                    problems.append((place, problem))
                    continue
                seen[entry["id"]] = place
                answers = tuple((a["text"], a["answer_start"]) for a in entry.get("answers", ()))
                known = answers or entry.get("is_impossible") is True
                found.examples.append(Question(entry["id"], entry["question"], context, answers if known else None))
                found.places.append(place)
                found.ids.append(entry["id"])
    refuse(path, problems or ([] if found.examples else [("line 1", "no question in it")]))
    if empty := sum(question.answers == () for question in found.examples):
        found.said.append(f"{empty} of {len(found.examples)} questions have no answer (SQuAD 2.0)")
    return found


def problem_of_question(entry: Any, context: str, labelled: bool) -> str:
    """What is wrong with an entry of "qas"; "" if nothing is."""
    if not isinstance(entry, dict):
        return "a question has to be an object"
    for key in ("id", "question"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            return f"{key!r} has to be a text"
    answers, name = entry.get("answers", []), f"question {entry['id']}"
    if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
        return f"{name}: 'answers' has to be a list of objects"
    if entry.get("is_impossible") is True and answers:
        return f"{name}: is_impossible, and yet it has answers"
    if labelled and not answers and entry.get("is_impossible") is not True:
        return f"{name}: no answer, and is_impossible does not say that there is none"
    for answer in answers:
        text, start = answer.get("text"), answer.get("answer_start")
        if not isinstance(text, str) or not text.strip() or not isinstance(start, int) or start < 0:
            return f"{name}: an answer needs a text and answer_start, a whole number from 0"
        if context[start : start + len(text)] != text:
            return f"{name}: at {start} stands {context[start : start + len(text)]!r:.40}, not {text!r:.40}"
    return ""


READERS: dict[str, Callable[..., Read]] = {"classify": read_texts, "tag": read_sentences, "answer": read_questions}
