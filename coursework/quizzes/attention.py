"""Questions of lesson 01."""

from coursework.quiz import quiz


def spread(guess: str = ""):
    return quiz(
        "A query and a key hold 64 random numbers each, of mean 0 and variance 1. Their dot product is again random "
        "around 0. About how far from 0 is it typically (its standard deviation)?",
        {
            "about 1": "One would think so because plus and minus cancel. They do for the mean, which stays 0. "
            "But each of the 64 products adds its own uncertainty, and uncertainties do not cancel.",
            "about 8": "Variances of independent numbers add up: 64 products of variance 1 give variance 64, "
            "and the standard deviation is its root.",
            "about 64": "That would be right if all products pulled in the same direction. They are independent: "
            "64 is the variance, and the standard deviation is √64.",
        },
        answer="b",
        guess=guess,
    )


def twins(guess: str = ""):
    return quiz(
        "Two sentences: “The match was over before the candle was lit.” and “The match was over before the whistle was "
        "blown.” A layer reads both with a causal mask. For which tokens does it give different vectors?",
        {
            "for all of them": "True without the mask: then each token gets a little of every other. With the mask no "
            "weight goes to the right, so the first words cannot know that the ending changed.",
            "from “candle” / “whistle” on": "Rows before the first difference mix the same keys and values in both "
            "sentences. “match” stands there, so its vector is the same to the last digit.",
            "only for the words that differ": "“was” and “.” after the candle are spelled the same, but they look back "
            "and take something from “candle”. Their inputs are equal, their outputs are not.",
            "for “match” and what follows": "It should be so if the model understood the sentence. But “match” may not "
            "look at anything to its right. This is what a causal mask costs.",
        },
        answer="b",
        guess=guess,
    )


def most_looked_at(guess: str = ""):
    return quiz(
        "In this layer [CLS] gets about a quarter of all weight, three times as much as any word. How much of what "
        "the tokens receive comes from [CLS]?",
        {
            "about a quarter, as the weights say": "One would think so: the weights are drawn everywhere as if they "
            "were the answer. But a weight is multiplied by a value vector, and vectors have lengths.",
            "more, since it is the summary token": "[CLS] ends up as the summary, in the last layer. In the first "
            "layer it has seen nothing yet and stands for no word.",
            "much less": "Its value vector is short. Heads that have nothing to say still must hand out a weight of 1 "
            "in each row; a token that gives little is a good place to leave it.",
        },
        answer="c",
        guess=guess,
    )
