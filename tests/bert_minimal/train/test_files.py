"""Files as people have them are read; files that are off are refused, by name and line."""

import json
import re

import pytest

from bert_minimal.train.answering import Question
from bert_minimal.train.files import Malformed, check_classes, read_questions, read_sentences, read_texts
from bert_minimal.train.finetune import Text
from bert_minimal.train.tagging import Sentence


def write(folder, name: str, content: str | bytes):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---------------------------------------------------------------- texts

GOOD = [Text("a fine film", "1"), Text("dull , dull", "0"), Text("cold \u2028 lamp", "1")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("header.tsv", "sentence\tlabel\na fine film\t1\ndull , dull\t0\ncold \u2028 lamp\t1\n"),
        ("windows.tsv", "sentence\tlabel\r\na fine film\t1\r\ndull , dull\t0\r\ncold \u2028 lamp\t1"),
        ("bom.tsv", "\ufeffLabel\tText\n1\ta fine film\n0\tdull , dull\n1\tcold \u2028 lamp\n"),
        ("no-header.tsv", "a fine film\t1\ndull , dull\t0\ncold \u2028 lamp\t1\n"),
        ("label-first.csv", '1,a fine film\n0,"dull , dull"\n1,cold \u2028 lamp\n'),
        ("extra.csv", 'genre,text,label\nx,a fine film,1\ny,"dull , dull",0\nz,cold \u2028 lamp,1\n'),
        ("lines.jsonl", '{"text": "a fine film", "label": 1, "x": null}\n{"label": 0, "text": "dull , dull"}\n'
                        '{"text": "cold \u2028 lamp", "label": "1"}\n'),
        ("cola.tsv", "g1\t1\t\ta fine film\ng2\t0\t*\tdull , dull\ng3\t1\t\tcold \u2028 lamp\n"),
    ],
)  # fmt: skip
def test_texts_in_every_format(tmp_path, name, content):
    read = read_texts(write(tmp_path, name, content))
    assert read.examples == GOOD
    first = 1 if name in ("no-header.tsv", "label-first.csv", "lines.jsonl", "cola.tsv") else 2
    assert read.places == [f"line {first + n}" for n in range(3)]
    assert read.ids == (["g1", "g2", "g3"] if name == "cola.tsv" else ["0", "1", "2"])


def test_what_was_guessed_or_passed_over_is_said(tmp_path):
    assert read_texts(write(tmp_path, "a.tsv", "x y\t1\nz w\t0\nv u\t1\n")).said == [
        "no header; the columns are taken as text, label"
    ]
    assert read_texts(write(tmp_path, "b.tsv", "text\tlabel\tgenre\na\t1\tx\n")).said == ["columns passed over: genre"]


def test_keys_of_all_rows_count(tmp_path):
    """Whatever row 1 has; what is not used is said, as it is of columns."""
    late = write(tmp_path, "a.jsonl", '{"text": "a", "score": 2}\n{"text": "b", "label": "x", "id": 7, "url": null}\n')
    read = read_texts(late, labelled=False)
    assert read.examples == [Text("a"), Text("b", "x")]
    assert read.ids == ["0", "7"]
    assert read.said == ["keys passed over: score, url"]
    assert read_texts(late, ("id", "text"), labelled=False).said[1:] == ["its keys say what is what, not --columns"]
    with pytest.raises(Malformed, match="line 1: 'label' is missing"):
        read_texts(late)


def test_a_label_to_be_found_may_be_null(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"text": "a", "label": null}\n{"text": "b", "label": 1}\n')
    assert read_texts(path, labelled=False).examples == [Text("a"), Text("b", "1")]
    with pytest.raises(Malformed, match="line 1: 'label' is NoneType"):
        read_texts(path)


def test_a_text_may_be_as_long_as_a_book(tmp_path):
    book = "a lamp, " * 30_000
    assert read_texts(write(tmp_path, "a.csv", f'text,label\n"{book}",1\n')).examples == [Text(book.strip(), "1")]


def test_pairs(tmp_path):
    by_name = read_texts(write(tmp_path, "a.tsv", "index\tquestion\tsentence\tlabel\n7\twho ?\tAnna .\tyes\n"))
    assert by_name.examples == [Text("who ?", "yes", "Anna .")]
    assert by_name.ids == ["7"]
    guessed = read_texts(
        write(tmp_path, "b.csv", '"3","Lamp lit","It is warm now."\n"1","Boat","It left."\n"3","a b","c"\n')
    )
    assert guessed.examples[0] == Text("Lamp lit", "3", "It is warm now.")  # as AG News has it


def test_the_two_columns_of_the_original_repositorys_test_files(tmp_path):
    for head in ("index\tsentence\n", "id\tsentence\n", ""):
        read = read_texts(write(tmp_path, "test.tsv", f"{head}0\tthe lamp was lit\n1\ta boat\n"), labelled=False)
        assert read.examples == [Text("the lamp was lit"), Text("a boat")]
        assert read.ids == ["0", "1"]


def test_other_files_to_predict(tmp_path):
    assert read_texts(write(tmp_path, "a.tsv", "a lamp\na boat\n"), labelled=False).examples == [
        Text("a lamp"),
        Text("a boat"),
    ]
    assert read_texts(write(tmp_path, "b.tsv", "a lamp\tlit ?\n"), labelled=False).examples == [
        Text("a lamp", None, "lit ?")
    ]
    kept = read_texts(write(tmp_path, "c.tsv", "text\tlabel\na lamp\tx\na boat\t\n"), labelled=False)
    assert kept.examples == [Text("a lamp", "x"), Text("a boat")]


def test_without_a_header_a_file_is_read_as_training_was(tmp_path):
    train = read_texts(write(tmp_path, "train.tsv", "1\ta lamp\n0\ta boat\n1\ta door\n"))
    path = write(tmp_path, "test.tsv", "1\tthe lamp\n1\tthe boat\n")
    test = read_texts(path, labelled=False, like=train.roles)
    assert test.examples == [Text("the lamp", "1"), Text("the boat", "1")]
    assert test.said == ["no header; the columns are taken as label, text, as in training"]
    with pytest.raises(Malformed, match=r"no telling what the 2 columns are .*--columns"):
        read_texts(path, labelled=False)  # a pair, or a text and its label?
    one = read_texts(write(tmp_path, "one.tsv", "a lamp\na boat\n"), labelled=False, like=train.roles)
    assert one.examples == [Text("a lamp"), Text("a boat")]


@pytest.mark.parametrize("header", ["tweet\tlabel", "label\tmessage", "id\tmessage"])
def test_a_header_of_which_no_name_is_a_texts_is_no_example(tmp_path, header):
    roles = tuple("text" if name in ("tweet", "message") else name for name in header.split("\t"))
    path = write(tmp_path, "a.tsv", f"{header}\nx\ta lamp\nz\ta boat\nz\ta door\n")
    with pytest.raises(Malformed, match=r"line 1: a header in which no column .*--columns label text"):
        read_texts(path, labelled=False)
    read = read_texts(path, roles, labelled=False)
    assert len(read.examples) == 3
    assert read.said == [f"line 1 is taken as a header: {', '.join(header.split(chr(9)))}"]


def test_a_class_may_be_called_like_a_column(tmp_path):
    path = write(tmp_path, "a.tsv", "target\ta lamp\nother\ta boat\ntarget\ta door\n")
    assert read_texts(path).examples == read_texts(path, ("label", "text")).examples
    assert len(read_texts(path).examples) == 3


def test_columns_can_be_said(tmp_path):
    path = write(tmp_path, "a.tsv", "1\t2\tlamp\n2\t2\tboat\n")
    assert read_texts(path, ("label", "-", "text")).examples == [Text("lamp", "1"), Text("boat", "2")]
    for columns, says in ((("label", "words"), "one of them"), (("text", "-"), 'no "label"'),
                          (("label", "text", "text"), 'text twice; .*"pair"')):  # fmt: skip
        with pytest.raises(ValueError, match=says):
            read_texts(path, columns)


MALFORMED_TEXTS = {
    "empty file": ("a.tsv", "", "line 1: the file is empty"),
    "only blank lines": ("a.csv", "\n \n", "the file is empty"),
    "too few columns": ("a.tsv", "text\tlabel\na b\t1\nc d\n", "line 3: 1 columns, 2 are wanted"),
    "too many columns": ("a.csv", "text,label\na, b,1\nc,0\n", "line 2: 3 columns, 2 are wanted"),
    "empty line inside": ("a.tsv", "text\tlabel\na b\t1\n\nc d\t0\n", "line 3: an empty line"),
    "no label": ("a.tsv", "text\tlabel\na b\t \nc\t1\n", "line 2: the label is empty"),
    "no text": ("a.csv", "label,text\n1,\n", "line 2: the text is empty"),
    "no pair": ("a.tsv", "label\tsentence1\tsentence2\n1\ta\tb\n1\ta\t\n", "line 3: the pair is empty"),
    "Latin-1": ("a.tsv", "text\tlabel\nfine\t1\ncafé\t0\n".encode("latin-1"), "line 3: byte 0xe9 is not UTF-8"),
    "UTF-16": ("a.tsv", "text\tlabel\nfine\t1\n".encode("utf-16"), "the file is UTF-16"),
    "Excel under a false name": ("a.csv", b"PK\x03\x04 and so on", "an Excel file"),
    "NUL": ("a.tsv", "text\tlabel\nfi\0ne\t1\n", "line 2: holds a NUL"),
    "another ending": ("a.xlsx", b"PK\x03\x04", "not from .xlsx"),
    "quote not closed": ("a.csv", 'text,label\n"a lamp,1\nb,0\n', "line 2: unexpected end of data"),
    "quote inside": ("a.csv", 'text,label\nok,1\n"a "lamp"",1\n', "line 3: .*written twice"),
    "header without text": ("a.jsonl", '{"words": "a", "label": 1}\n', "0 columns named like texts"),
    "header without label": ("a.tsv", "id\ttext\n1\ta b\n", "no column named label"),
    "three texts": ("a.tsv", "text\tsentence1\tsentence2\tlabel\n", "3 columns named like texts"),
    "two labels": ("a.tsv", "text\tlabel\tclass\n", "several columns named like a label"),
    "header twice": ("a.tsv", "text\tlabel\ttext\n", "two columns of the same name"),
    "header only": ("a.tsv", "text\tlabel\n", "line 2: nothing follows the header"),
    "no telling columns": ("a.tsv", "one two\tthree four\nfive\tsix seven\n", "no telling what the 2 columns are"),
    "five columns": ("a.tsv", "a\tb\tc\td\te\n", "no telling what the 5 columns are"),
    "no JSON": ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b", label: 1}\n', "line 2: no JSON: .* at column"),
    "JSON, no object": ("a.jsonl", '["a", 1]\n', "line 1: one object a line is wanted, not list"),
    "JSON, key missing": ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n', "line 2: 'label' is missing"),
    "JSON, wrong kind": ("a.jsonl", '{"text": ["a"], "label": 1}\n', "line 1: 'text' is list"),
    "JSON, truth for label": ("a.jsonl", '{"text": "a", "label": true}\n', "line 1: 'label' is bool"),
    "texts as labels": ("a.tsv", "label\ttext\n" + "".join(f"w{n} x\ta\n" for n in range(30)), "30 labels in 30 rows"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "says"), MALFORMED_TEXTS.values(), ids=MALFORMED_TEXTS)
def test_malformed_texts(tmp_path, name, content, says):
    with pytest.raises(Malformed, match=says) as refused:
        read_texts(write(tmp_path, name, content))
    assert str(tmp_path / name) in str(refused.value)


def test_every_malformed_row_is_named(tmp_path):
    rows = ["text\tlabel"] + [f"a {n}\t1" if n % 2 else f"a {n}" for n in range(40)]
    with pytest.raises(Malformed) as refused:
        read_texts(write(tmp_path, "a.tsv", "\n".join(rows)))
    named = re.findall(r"line (\d+)", str(refused.value))
    assert named == [str(n + 2) for n in range(0, 40, 2)]
    assert "… and 10 more" in str(refused.value)


def test_a_label_that_training_does_not_know(tmp_path):
    read = read_texts(write(tmp_path, "dev.tsv", "text\tlabel\na b\tgood\nc d\tgod\n"))
    with pytest.raises(Malformed, match=r"dev.tsv, line 3: the label 'god' does not occur in training \(bad, good\)"):
        check_classes(read, ("bad", "good"))


# ---------------------------------------------------------------- words with tags


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tab", "Anna\tB-PER\nslept\tO\n\nLyon\tB-LOC\n"),
        ("space", "-DOCSTART- O\n\nAnna B-PER\nslept O\n\n\nLyon B-LOC\n\n"),
        ("four columns", "Anna NNP B-NP B-PER\r\nslept VB O O\r\n\r\nLyon NNP B-NP B-LOC\r\n"),
    ],
)
def test_sentences(tmp_path, name, content):
    read = read_sentences(write(tmp_path, "a.conll", content))
    assert read.examples == [Sentence(["Anna", "slept"], ["B-PER", "O"]), Sentence(["Lyon"], ["B-LOC"])]
    assert read.places == (["line 3", "line 7"] if name == "space" else ["line 1", "line 4"])
    assert read.said == (["1 lines -DOCSTART- passed over"] if name == "space" else [])


def test_words_that_look_like_something_else(tmp_path):
    words = ["#", "O", "-", "a b", '"', "\u00a0"]
    read = read_sentences(write(tmp_path, "a.conll", "".join(f"{word}\tO\n" for word in words[:-1])))
    assert read.examples[0].words == words[:-1]


def test_io_scheme_is_said(tmp_path):
    read = read_sentences(write(tmp_path, "a.conll", "Anna I-PER\nOtto I-PER\nslept O\n"))
    assert read.said == ["no B- tag (IO scheme): neighbouring entities of one type count as one"]


def test_words_alone_will_do_for_prediction(tmp_path):
    read = read_sentences(write(tmp_path, "a.conll", "Anna\nslept\n\nLyon\n"), labelled=False)
    assert read.examples == [Sentence(["Anna", "slept"]), Sentence(["Lyon"])]


MALFORMED_SENTENCES = {
    "one column": ("Anna\nslept\n", "line 1: there is a word and no tag"),
    "tag missing": ("Anna\tB-PER\nslept\n", "line 2: 1 columns, the first line has 2; columns are cut at tabs"),
    "tab and space mixed": ("Anna B-PER\nslept\tO\n", "line 2: 1 columns, the first line has 2"),
    "two spaces": ("Anna  B-PER\nslept O\n", "line 2: 2 columns, the first line has 3"),
    "word missing": ("Anna\tB-PER\n\tO\n", "line 2: the word is empty"),
    "type missing": ("Anna\tB-\n", "line 1: the tag is 'B-'"),
    "no prefix": ("Anna\tPER\n", "line 1: the tag is 'PER'; O, B-TYPE or I-TYPE is wanted"),
    "BIOES": ("Anna\tS-PER\n", "other schemes, as BIOES: convert"),
    "lower case": ("Anna\tb-PER\n", "the tag is 'b-PER'"),
    "columns swapped": ("B-PER\tAnna\n", "the tag is 'Anna'"),
    "no sentence": ("-DOCSTART- O\n", "no sentence in it"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "says"), MALFORMED_SENTENCES.values(), ids=MALFORMED_SENTENCES)
def test_malformed_sentences(tmp_path, content, says):
    with pytest.raises(Malformed, match=says) as refused:
        read_sentences(write(tmp_path, "a.conll", content))
    assert str(tmp_path / "a.conll") in str(refused.value)


# ---------------------------------------------------------------- questions


def squad(*questions: dict, context: object = "Otto slept late.") -> str:
    return json.dumps(
        {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": [*questions]}]}]}
    )


def asked(**changes) -> dict:
    return {"id": "q1", "question": "Who slept?", "answers": [{"text": "Otto", "answer_start": 0}]} | changes


def test_questions(tmp_path):
    nothing = asked(id="q2", answers=[], is_impossible=True, plausible_answers=[{"text": "late", "answer_start": 11}])
    read = read_questions(write(tmp_path, "a.json", squad(asked(is_impossible=False), nothing)))
    assert read.examples == [
        Question("q1", "Who slept?", "Otto slept late.", (("Otto", 0),)),
        Question("q2", "Who slept?", "Otto slept late.", ()),
    ]
    assert read.said == ["1 of 2 questions have no answer (SQuAD 2.0)"]
    assert read.places == ["data[0].paragraphs[0].qas[0]", "data[0].paragraphs[0].qas[1]"]


def test_questions_without_answers_to_predict(tmp_path):
    read = read_questions(write(tmp_path, "a.json", squad({"id": "q1", "question": "Who?"})), labelled=False)
    assert read.examples == [Question("q1", "Who?", "Otto slept late.", None)]


def answered(*answers: object) -> str:
    """answers: text, start, text, start …"""
    pairs = zip(answers[::2], answers[1::2], strict=True)
    return squad(asked(answers=[{"text": text, "answer_start": start} for text, start in pairs]))


PLACE = r"data\[0\].paragraphs\[0\].qas\[0\]: "
MALFORMED_QUESTIONS = {
    "no JSON": ('{"data": [\n{"paragraphs": ]}', "line 2: no JSON: .* at column"),
    "another file": ("[1, 2]", "no SQuAD file"),
    "no list": ('{"data": {}}', "line 1: 'data' has to be a list"),
    "no paragraphs": ('{"data": [{"title": "t"}]}', r"data\[0\]: 'paragraphs' has to be a list"),
    "no context": (squad(asked(), context=None), r"data\[0\].paragraphs\[0\]: 'context' has to be a text"),
    "no question": (squad(asked(question=" ")), PLACE + "'question' has to be a text"),
    "number for an id": (squad(asked(id=7)), PLACE + "'id' has to be a text"),
    "id twice": (squad(asked(), asked()), r"qas\[1\]: the id 'q1' stands at data.*qas\[0\] already"),
    "answer elsewhere": (answered("slept", 4), "q1: at 4 stands ' slep', not 'slept'"),
    "answer over the end": (answered("late.!", 11), "q1: at 11 stands 'late.'"),
    "start is text": (answered("Otto", "0"), "a whole number from 0"),
    "start below 0": (answered("late.", -5), "a whole number from 0"),
    "empty answer": (answered("", 0), "an answer needs a text"),
    "second answer wrong": (answered("Otto", 0, "x", 0), "q1: at 0 stands 'O', not 'x'"),
    "answers no list": (squad(asked(answers={"text": "Otto"})), "'answers' has to be a list of objects"),
    "no answer, unsaid": (squad(asked(answers=[])), "is_impossible does not say"),
    "impossible and answered": (squad(asked(is_impossible=True)), "is_impossible, and yet it has answers"),
    "nothing in it": ('{"data": []}', "no question in it"),
    "question no object": (squad("Who?"), PLACE + "a question has to be an object"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "says"), MALFORMED_QUESTIONS.values(), ids=MALFORMED_QUESTIONS)
def test_malformed_questions(tmp_path, content, says):
    with pytest.raises(Malformed, match=says) as refused:
        read_questions(write(tmp_path, "a.json", content))
    assert str(tmp_path / "a.json") in str(refused.value)


# ---------------------------------------------------------------- real files


def test_real_files(real_data):
    """Counts as counted by others (the data's README)."""
    wnut = [len(read_sentences(real_data / "wnut17" / name).examples)
            for name in ("wnut17train.conll", "emerging.dev.conll")]  # fmt: skip
    assert wnut == [3394, 1009]
    gold = read_sentences(real_data / "wikigold" / "wikigold.conll.txt")
    assert (len(gold.examples), sum(len(s.words) for s in gold.examples)) == (1696, 39007)
    assert "IO scheme" in gold.said[-1]
    assert len(read_questions(real_data / "xquad" / "xquad.en.json").examples) == 1190
