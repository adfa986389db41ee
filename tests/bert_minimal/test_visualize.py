"""Pictures: what is drawn is what was given, has a text, needs no network, and renders in a real browser."""

import base64
import html
import io
import math
import re

import numpy as np
import pytest
import torch

from bert_minimal import visualize

pytest.importorskip("matplotlib")
pytest.importorskip("bertviz")

TOKENS = ["[CLS]", "the", "bank", "closed", ".", "[SEP]"]


def heads(L=2, H=3, S=6):
    """L attention maps (1, H, S, S), sharp enough that every head differs."""
    rng = torch.Generator().manual_seed(3)
    return [(torch.randn(1, H, S, S, generator=rng) * 2).softmax(-1) for _ in range(L)]


def png(html_object):
    """The embedded picture as (height, width, 4) numbers in [0, 1]."""
    from matplotlib.image import imread

    return imread(io.BytesIO(base64.b64decode(re.search(r"base64,([^\"]+)", html_object.data)[1])))


# -- attention grid


def test_grid_draws_the_given_numbers_with_labels_and_one_scale():
    weights = heads()[0]
    figure = visualize.attention_grid(weights, TOKENS, "A finding")
    maps = [axis for axis in figure.axes if axis.images]
    assert len(maps) == 3
    for head, axis in enumerate(maps):
        (image,) = axis.images
        np.testing.assert_allclose(image.get_array(), weights[0, head].numpy(), rtol=1e-6)
        assert image.get_clim() == (0, 1)
        assert image.get_cmap().name == "cividis"
        assert axis.get_title() == f"head {head}"
        assert [t.get_text() for t in axis.get_xticklabels()] == TOKENS
        rows = TOKENS if head == 0 else []  # once a row of pictures
        assert [t.get_text() for t in axis.get_yticklabels()] == rows
    assert figure.get_suptitle() == "A finding"


def test_grid_takes_arrays_names_and_an_odd_number_of_heads():
    weights = heads(H=5)[0][0].numpy()
    figure = visualize.attention_grid(weights, TOKENS, "t", columns=3, names=list("abcde"))
    assert [axis.get_title() for axis in figure.axes if axis.images] == list("abcde")
    figure.savefig(io.BytesIO())  # the sixth place stays empty; drawing must not fail


def test_a_long_title_fits_over_one_small_map():
    title = "Every token looks one word back, and the first one at itself"
    figure = visualize.attention_grid(heads(H=1)[0], TOKENS, title)
    figure.draw_without_rendering()
    box = figure._suptitle.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w, t: (w[0, 0], t), r"must be \(H, S, S\)"),
        (lambda w, t: (torch.cat([w, w]), t), r"not \(2, 3, 6, 6\)"),
        (lambda w, t: (w, t[:-1]), "6 positions but 5 tokens: drop padding"),
        (lambda w, t: (w, "[CLS] the bank"), "list of strings"),
        (lambda w, t: (w * 3, t), "after the softmax"),
        (lambda w, t: (w - 0.5, t), "after the softmax"),
        (lambda w, t: (w.log().masked_fill(w > 0.1, math.nan), t), "after the softmax"),
        (lambda w, t: (torch.full((1, 1, 33, 33), 1 / 33), ["x"] * 33), "33 tokens are too many"),
    ],
)
def test_wrong_weights_get_one_clear_sentence(change, says):
    weights, tokens = change(heads()[0], TOKENS)
    with pytest.raises(ValueError, match=says):
        visualize.attention_grid(weights, tokens, "t")
    with pytest.raises(ValueError, match=says):
        visualize.attention_view([weights], tokens)


# -- figures as HTML


def test_figure_is_opaque_white_has_its_text_and_is_the_same_each_time():
    figure = visualize.attention_grid(heads()[0], TOKENS, "t")
    shown = visualize.figure_html(figure, 'Head 1 looks at "bank" & back')
    assert shown.data.startswith("<figure")
    alt = re.search(r'alt="([^"]*)"', shown.data)[1]
    assert html.unescape(alt) == 'Head 1 looks at "bank" & back'
    picture = png(shown)
    assert (picture[..., 3] == 1).all()
    assert (picture[0] == 1).all()  # the upper edge
    again = visualize.attention_grid(heads()[0], TOKENS, "t")
    assert visualize.figure_html(again, 'Head 1 looks at "bank" & back').data == shown.data
    with pytest.raises(ValueError, match="alt is empty"):
        visualize.figure_html(figure, "  ")


def test_a_pyplot_figure_is_not_shown_twice():
    from matplotlib import pyplot

    figure = pyplot.figure()
    visualize.figure_html(figure, "empty")
    assert not pyplot.fignum_exists(figure.number)


def test_style_is_white_and_lines_differ_in_more_than_colour():
    import matplotlib

    with matplotlib.rc_context():
        visualize.style()
        assert matplotlib.rcParams["figure.facecolor"] == "white"
        assert matplotlib.rcParams["figure.constrained_layout.use"]
        cycle = list(matplotlib.rcParams["axes.prop_cycle"])
    assert len({entry["color"] for entry in cycle}) == len(cycle)
    assert len({str(entry["linestyle"]) for entry in cycle}) == len(cycle)


def test_one_colour_for_one_thing():
    names = ["QUERY", "KEY", "VALUE", "SEGMENT_A", "SEGMENT_B", "MASKED", "RANDOM", "KEPT"]
    assert len({getattr(visualize, name) for name in names}) == len(names)


# -- hidden states and losses


def test_hidden_state_map_shows_cosines_with_the_embedding():
    first = torch.eye(6)[None]  # six orthogonal vectors
    turned = first.roll(1, dims=1)
    figure = visualize.hidden_state_map([first, 2 * first, first + turned, turned], TOKENS, "t")
    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(shown, np.array([1, 1, 0.5**0.5, 0])[:, None].repeat(6, 1), atol=1e-12)
    with pytest.raises(ValueError, match="6 positions, but 5 tokens"):
        visualize.hidden_state_map([first], TOKENS[:5], "t")


def test_loss_curves_label_the_data_and_survive_a_run_that_blew_up():
    curves = {"good": [3.0, 2.0, 1.0], "ill": [3.0, 9.0, math.nan], "dead": [math.nan] * 3}
    figure = visualize.loss_curves(curves, "t", every=10, lines={"guessing": math.log(30)})
    axis = figure.axes[0]
    good = axis.lines[0]
    assert good.get_xdata().tolist() == [10, 20, 30]
    assert good.get_ydata().tolist() == [3, 2, 1]
    labels = {text.get_text().strip(): getattr(text, "xy", None) for text in axis.texts}
    assert labels["good"] == (30, 1.0)
    assert labels["ill"] == (20, 9.0)
    assert {"dead", "guessing"} <= set(labels)
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="at least one loss"):
        visualize.loss_curves({"empty": []}, "t")


# -- bertviz, offline


def page_of(view):
    """The document inside the frame."""
    return html.unescape(re.search(r'srcdoc="([^"]*)"', view.data)[1])


@pytest.mark.parametrize("kind", ["head", "model"])
def test_view_needs_no_network_and_carries_its_licences(kind, recwarn):
    view = visualize.attention_view(heads(), TOKENS, kind, sentence_b_start=3)
    page = page_of(view)
    assert 'sandbox="allow-scripts"' in view.data
    assert "background:#fff" in view.data
    assert not re.search(r"(src|href)\s*=\s*[\"']?\s*(https?:)?//", page)
    assert not re.search(r"cdnjs|require\.min|@import|url\(", page)
    assert "fetch(" not in re.sub(r"<script>/\*! jQuery.*?</script>", "", page, flags=re.S)
    assert "OpenJS Foundation" in page
    assert "Copyright (c) 2010-2018, Michael Bostock" in page
    assert view.data == visualize.attention_view(heads(), TOKENS, kind, sentence_b_start=3).data
    assert not [w for w in recwarn if "IFrame" in str(w.message)]  # a warning costs marks in graded cells


def test_view_holds_the_numbers_rounded_to_four_places():
    page = page_of(visualize.attention_view(heads(), TOKENS))
    numbers = re.findall(r"0\.\d+", re.search(r'"attn": (\[.*?\]\]\]\])', page)[1])
    assert len(numbers) >= 200
    assert max(len(number) for number in numbers) <= 6
    assert f"{heads()[1][0, 2, 3, 4].item():.4f}".rstrip("0") in numbers


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"attentions": heads()[0]}, "one a layer"),
        ({"kind": "neuron"}, "'head' or 'model', not 'neuron'"),
        ({"sentence_b_start": 6}, "between 1 and 5"),
    ],
)
def test_wrong_view_arguments_get_one_clear_sentence(arguments, says):
    with pytest.raises(ValueError, match=says):
        visualize.attention_view(**{"attentions": heads(), "tokens": TOKENS, **arguments})


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["head", "model"])
def test_view_renders_in_chromium_without_network(kind, theme, chromium_path):
    playwright = pytest.importorskip("playwright.sync_api")
    tokens = [*TOKENS[:-2], "</script><b>", "[SEP]"]  # a token that would break out of the page
    view = visualize.attention_view(heads(), tokens, kind)
    colour = {"light": "white", "dark": "#111111"}[theme]
    errors, asked = [], []
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        page = browser.new_page(color_scheme=theme, viewport={"width": 1100, "height": 900})
        page.on("pageerror", lambda error: errors.append(error))
        page.on("request", lambda request: asked.append(request.url))
        page.context.set_offline(True)
        page.set_content(f'<body style="background:{colour};color-scheme:{theme}">{view.data}')
        frame = page.frames[1]
        frame.locator("svg text").first.wait_for()
        if kind == "head":
            texts = frame.locator("svg text").all_text_contents()
            assert texts == [*tokens, *tokens]
            assert frame.locator("svg line").count() == 3 * len(tokens) ** 2
            frame.locator("#left text").nth(2).hover()  # one token's lines, all heads
            assert frame.locator("line[visibility='visible']").count() == 3 * len(tokens)
        else:
            assert frame.locator("svg line").count() >= 2 * 3 * len(tokens) ** 2
            frame.locator("svg").click(position={"x": 100, "y": 80})  # a thumbnail opens its detail
            assert "</script><b>" in frame.locator("svg text").all_text_contents()
        inside = frame.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert inside[0] <= inside[1]  # nothing is cut off
        picture = io.BytesIO(page.locator("iframe").screenshot())
        browser.close()
    from matplotlib.image import imread

    assert (imread(picture)[2, 2, :3] == 1).all()  # white around the text in both themes
    assert not errors
    assert not [url for url in asked if not url.startswith(("about:", "data:"))]
