"""Questions of lesson 07."""

from coursework.quiz import quiz


def what_is_learned_first(guess: str = ""):
    return quiz(
        "In its first hundred steps a model's loss falls steeply. What does most of that fall teach it?",
        {
            "grammar: which kind of word fits": "That comes, but later and slowly. To use a neighbour, attention has "
            "to find it first, and for a hundred steps it hardly moves.",
            "how frequent each piece is": "The bias of the head has one number for each piece. Setting it to the "
            "logarithm of the frequencies is easy, and pays for nearly all of the early fall. The experiment below "
            "trains that bias alone.",
            "to copy the words that it can see": "The places that are asked are hidden (four in five), so copying "
            "pays little. If the loss goes down that way, there is a leak.",
        },
        answer="b",
        guess=guess,
    )


def no_bias_correction(guess: str = ""):
    return quiz(
        "Adam's `m` and `v` both begin at 0, so both are too small at first. BERT's original program does not "
        "correct that. How large is its first step, compared with a corrected one?",
        {
            "smaller: `m` is only a tenth of the gradient": "That is half of the truth, and the half that is often "
            "told. `m` is too small by 0.1. But it is divided by √v, and `v` is too small by 0.001.",
            "the same: the two effects cancel": "A fair hope, as one divides by the other. They "
            "would cancel if 0.1 were √0.001. But √0.001 is 0.032.",
            "about three times larger": "0.1 / √0.001 = 3.16. Without correction the first steps are too *long*, at "
            "the very time when the gradient knows least. That is one more reason for a warm-up.",
        },
        answer="c",
        guess=guess,
    )


def patients(guess: str = ""):
    return quiz(
        "Look at patient D. Solid is the loss on what it trains on, dashed the loss on held-out text. "
        "What is wrong with it?",
        {
            "the learning rate is too high": "Then the loss would stay high or jump. This one falls on both texts, "
            "further than any honest model ever came.",
            "it sees the same few batches again and again": "Then the dashed line would turn and go up: what it "
            "knows by heart is of no use elsewhere. Here the dashed line falls as well.",
            "the answer leaks into the question": "The loss goes to 0 on text that it has never seen. No text is so "
            "predictable. The pieces that are asked stand in the input, in the open.",
        },
        answer="c",
        guess=guess,
    )
