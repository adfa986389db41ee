"""Questions of lesson 04."""

from coursework.quiz import quiz


def two_draws(guess: str = ""):
    return quiz(
        "A program decides for each selected piece with two independent draws: with chance 10 % “random piece”, with "
        "chance 10 % “leave as it is”, and `[MASK]` if neither happens. What share becomes `[MASK]`?",
        {
            "80 %: 100 − 10 − 10": "That would need the two never to happen together. Independent draws know nothing "
            "of each other: in 1 % of the cases both say yes, and one overrules the other.",
            "81 %": "Neither happens with chance 0.9 · 0.9 = 0.81. The 1 % where both happen is missing from one of "
            "the other two. Published code does this.",
            "72 %": "0.8 · 0.9 is what remains if [MASK] is drawn first with 80 % and then 10 % of *all* become "
            "random, over the [MASK]s too: another mistake, with its own numbers.",
        },
        answer="b",
        guess=guess,
    )


def who_learns_faster(guess: str = ""):
    return quiz(
        "Two equal small models read the same text for the same number of steps. One guesses the next word at every "
        "place (left to right), the other fills in blanks, 15 % of the words. Whose loss falls faster at first?",
        {
            "the one with blanks: it sees both sides": "Seeing both sides makes each question easier in the end. But "
            "at first a model must learn from answers, and it gets few: 15 in a hundred words.",
            "the one from left to right": "It gets an answer at every word, six to seven times as many a step. The "
            "paper says so itself (appendix C.1), and adds that on a task the blanks are nevertheless better.",
            "the same: it is the same text": "The same text, but not the same number of questions about it. What "
            "trains a model is the questions.",
        },
        answer="b",
        guess=guess,
    )
