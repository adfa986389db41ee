"""Questions of lesson 06."""

from coursework.quiz import quiz


def without_residual(guess: str = ""):
    return quiz(
        "Twelve fresh layers, and we take the “add” out of “add & norm”: each half of a layer passes on only what it "
        "computed. LayerNorm still keeps every vector at its length. What happens to the twelve tokens of a sentence?",
        {
            "their vectors shrink to 0": "The classical story of deep networks, and without LayerNorm it would be so. "
            "But LayerNorm stretches every vector back to its length after every half layer.",
            "not much: LayerNorm keeps the signal in order": "It keeps the length. What it cannot keep is the "
            "difference between one token and another.",
            "they all become the same vector": "A fresh attention looks everywhere alike, so it gives each token the "
            "mean of all. Without the add, the mean is all that is left of anyone.",
        },
        answer="c",
        guess=guess,
    )


def where_they_sit(guess: str = ""):
    return quiz(
        "BERT is famous for attention. Of the 109 million parameters of BERT-base, how many belong to attention "
        "(query, key, value and output projections of all layers)?",
        {
            "most of them, about two thirds": "It is what everyone draws. But attention's four matrices are 768 × 768, "
            "and feed-forward's two are four times as large each.",
            "about a quarter": "4 · 768² a layer is 28 million in all. Feed-forward has 8 · 768² a layer, twice as "
            "many, and the word table alone has 23 million.",
            "hardly any: attention is products of vectors": "The scores are, and softmax has no parameters either. But "
            "query, key, value and output are learned matrices.",
        },
        answer="b",
        guess=guess,
    )


def truncated(guess: str = ""):
    return quiz(
        "Google's BERT starts from a normal distribution with spread 0.02, cut off at two spreads. Someone writes "
        "`nn.init.trunc_normal_(w, std=0.02)` for it. What is the largest |w| among three million?",
        {
            "0.04: two times 0.02": "That is what Google's code gives, and what the function's name seems to promise. "
            "But its bounds a = −2 and b = 2 are plain numbers, and nobody multiplied them by std.",
            "about 0.1: nothing was cut": "The bounds are −2 and 2, a hundred spreads away. So it is a plain normal "
            "distribution, and among three million draws the largest is about five spreads out.",
            "2: the bound of the function": "It is where the function would cut. But 2 is a hundred "
            "spreads of 0.02, and no draw among three million comes near it.",
        },
        answer="b",
        guess=guess,
    )
