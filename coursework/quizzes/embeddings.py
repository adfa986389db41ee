"""Questions of lesson 02."""

from coursework.quiz import quiz


def without_positions(guess: str = ""):
    return quiz(
        "We set all position vectors of a trained model to 0 and give it “The seal broke the ice.” and “The ice broke "
        "the seal.” How do the vectors of “seal” differ between the two, after six layers?",
        {
            "a lot: one breaks, the other is broken": "So it should be. But to notice who stands before the verb, "
            "something must know what “before” is. Attention compares each token with each other, wherever they stand.",
            "a little: the neighbours are others": "There are no neighbours. A weighted mean has no left and no right; "
            "“ice” and “broke” arrive from wherever they are in just the same way.",
            "not at all": "Both sentences are the same bag of tokens. Each token meets the same crowd, so each gets "
            "the same vector, down to the rounding of the last digit.",
        },
        answer="c",
        guess=guess,
    )


def sum_undone(guess: str = ""):
    return quiz(
        "The input of a token is one vector: word + segment + position, added up. You get only the sum. For how many "
        "of our tokens can you find out which word it was, and where it stood?",
        {
            "for none: a sum cannot be undone": "True for numbers: 7 may be 3 + 4 or 5 + 2. But these are 384 numbers "
            "at once, and in so many directions two random vectors hardly get in each other's way.",
            "the words, but not the places": "Word vectors are about twice as long as position vectors, so the words "
            "are easier. But the short vector is not drowned: it points somewhere else.",
            "nearly all words and nearly all places": "There is room for everything in 384 directions. If a dot "
            "product can find the parts again, so can attention, which is made of dot products.",
        },
        answer="c",
        guess=guess,
    )


def pad_length(guess: str = ""):
    return quiz(
        "`[PAD]` fills up short rows and means nothing. A typical word's vector has length 1.1 in MiniLM's table. How "
        "long is the vector of `[PAD]`?",
        {
            "0, because padding means nothing": "PyTorch can do that (`padding_idx` sets the row to 0 and keeps it "
            "there), and many texts draw it so. But BERT was trained without: its [PAD] started like any other row.",
            "almost 0: training shrank it": "Weight decay pulls on it, but nothing asks for 0. Behind a correct mask "
            "no one sees the vector of [PAD], so training had no reason to make it anything in particular.",
            "about 0.8, like a shorter word's": "It is an ordinary row of the table, and one in ten pieces is even "
            "shorter. What hides the padding is the mask, and nothing else.",
        },
        answer="c",
        guess=guess,
    )
