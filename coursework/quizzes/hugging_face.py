"""Questions of lesson 12."""

from coursework.quiz import quiz


def share_of_the_model(guess: str = ""):
    return quiz(
        "The library's file that defines BERT is long. How many of its lines of code does BertModel run when it turns "
        "ids into vectors?",
        {
            "nearly all of them": "One would hope so: the file is called modeling_bert. But it also holds every head, "
            "and each step has doors for things that BERT itself never does.",
            "about half": "The heads alone would bring it down to that. There is more: a decoder, a cache, "
            "cross-attention, documentation.",
            "less than a quarter": "Most lines are other models with the same body, cases that a BERT never meets, "
            "and text. What computes is about as long as ours.",
        },
        answer="c",
        guess=guess,
    )


def pooled(guess: str = ""):
    return quiz(
        "`pooler_output` is made from the last vector of [CLS]. How alike are the two vectors?",
        {
            "the same: pooling [CLS] means taking it": "The name suggests it. But between the two stand a dense layer "
            "and a tanh; the pooler has weights of its own.",
            "much alike: a dense layer changes little": "After training, a dense layer may turn a vector anywhere. "
            "Nothing in it asks for the result to look like the input.",
            "unrelated: their cosine is about 0": "The dense layer mixes all features, so feature 7 of the one has "
            "nothing to do with feature 7 of the other. Which one a head was trained on matters.",
        },
        answer="c",
        guess=guess,
    )


def who_is_to_blame(guess: str = ""):
    return quiz(
        "One bias is missing in layer 3 of 6. Which hidden states differ from the right ones?",
        {
            "that of layer 3 only": "It would be so if layers did not feed one another. Layer 4 gets a wrong input and "
            "gives a wrong output, although nothing is wrong with it.",
            "those of layers 3, 4 and 5": "The first one that differs is to blame. All after it only pass it on.",
            "all of them": "Nothing flows back: what comes before layer 3 never hears of it.",
        },
        answer="b",
        guess=guess,
    )
