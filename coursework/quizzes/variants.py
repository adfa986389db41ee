"""Questions of lesson 11."""

from coursework.quiz import quiz


def nine_times_smaller(guess: str = ""):
    return quiz(
        "ALBERT base stores about 12 million parameters, BERT base 109 million. Both read the same text on the same "
        "machine. How much faster is ALBERT?",
        {
            "nine times": "Time goes into multiplying, not into storing. A layer that is used twelve times is "
            "multiplied twelve times; only its file is read once.",
            "not at all, or hardly": "It runs twelve layers of the same width as BERT does. What it saves is memory "
            "and the size of the file.",
            "twice: the embeddings are narrow": "Looking a vector up costs next to nothing, however wide it is. The "
            "narrow table saves parameters, and hardly a multiplication.",
        },
        answer="b",
        guess=guess,
    )


def order_by_words(guess: str = ""):
    return quiz(
        "A program counts which words the two segments share, and knows nothing of their order. It answers “next "
        "sentence?” better than a coin. How well does it answer “in order or swapped?”",
        {
            "as well: the pairs are from the same texts": "The shared words are the same in both orders. A count "
            "that does not change when the segments are swapped can't tell the orders apart.",
            "like a coin: one in two": "Swapping changes neither the words nor how many are shared. Whoever sees "
            "only that has to guess.",
            "better: both segments are from one document": "That both are from one document is true for every pair, "
            "in order or swapped. It says nothing about which came first.",
        },
        answer="b",
        guess=guess,
    )
