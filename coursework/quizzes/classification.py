"""Questions of lesson 08."""

from coursework.quiz import quiz


def larger_rate(guess: str = ""):
    return quiz(
        "The same 96 sentences, three times through, with four learning rates from 3e-5 to 3e-3. The largest is "
        "a hundred times the smallest. What does it do?",
        {
            "it learns faster: the best result after so few steps": "In the first step, yes, if you look at the "
            "training loss. But Adam's step has the length of the rate, whatever the gradient: at 3e-3 every weight "
            "moves by a good part of its own size.",
            "the same as the others: Adam adapts the rate by itself": "Adam adapts to the size of the gradient. The "
            "length of its step is the rate you gave it.",
            "it forgets: what pre-training has built is overwritten": "Eighteen long steps, in the direction of 96 "
            "sentences, through weights that took 13,500. The next picture asks the old head.",
            "the loss becomes NaN and the run stops": "That would be the kind way. In practice it runs to the end and "
            "leaves a model that answers, only no better than a coin.",
        },
        answer="c",
        guess=guess,
    )


def one_seed(guess: str = ""):
    return quiz(
        "Recipe A gets 71 % of 300 test sentences right, recipe B 73 %, each tried once. Which one do you take?",
        {
            "B: it is better": "On these sentences, with this seed. Six sentences made the difference; the next seed "
            "may turn it round.",
            "A, if it is simpler: 2 % of 300 is within luck": "A share of 72 % measured on 300 sentences has a "
            "standard error of 2.6 % by itself, and the seed adds its own. Several seeds and a larger test set decide.",
            "neither: the test set must not be used to choose": "A good habit, and dev sets are for that. But a dev "
            "set of 300 would not tell them apart either.",
        },
        answer="b",
        guess=guess,
    )


def lazy(guess: str = ""):
    return quiz(
        "Nine of ten mails are fine, one is spam. A filter lets everything through without reading. “Fine” is class 1. "
        "What does it get?",
        {
            "accuracy 0.9, F1 0.95, MCC 0": "It finds every fine mail (recall 1) and is right nine times in ten "
            "(precision 0.9). Only MCC asks whether the answers have anything to do with the truth.",
            "accuracy 0.9, F1 0.1, MCC 0": "F1 would be low (0, in fact) if “spam” were class 1. F1 looks at one class "
            "only, and here it is the frequent one.",
            "accuracy 0.5, F1 0.5, MCC 0": "Half right is what a coin gets. This one knows what is frequent.",
        },
        answer="a",
        guess=guess,
    )
