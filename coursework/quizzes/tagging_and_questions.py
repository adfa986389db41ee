"""Questions of lesson 10."""

from coursework.quiz import quiz


def repeated_labels(guess: str = ""):
    return quiz(
        "“violinmaker” is B-PER and becomes `violin ##maker`. Somebody gives both pieces the label B-PER. How many "
        "people are there now?",
        {
            "one: both pieces are one word": "The data says so, the labels don't. B- means: here begins somebody.",
            "two": "Each B- begins an entity. The model learns to cut names in two, and is punished by the score for "
            "doing what it was taught.",
            "none: ## pieces are not read": "BERT reads every piece. It is the label that may be left out.",
        },
        answer="b",
        guess=guess,
    )


def who_finds_nothing(guess: str = ""):
    return quiz(
        "A tagger says O to every word of the small set's test part. Which share of the words does it get right?",
        {
            "0 %, it finds nothing": "It finds no name. But words outside of names are words too, and it is right "
            "about all of them.",
            "about 30 %": "That is about the share of words inside names here. It is what gets lost.",
            "about 70 %": "Most words are O. In newspapers it is more than 80 %, in tweets over 90 %. The number "
            "looks like work and is none.",
        },
        answer="c",
        guess=guess,
    )


def two_favourites(guess: str = ""):
    return quiz(
        "The piece with the best start score is number 15, the piece with the best end score number 9. What is the "
        "answer?",
        {
            "pieces 9 to 15: exchange them": "The model said that 15 is a start and 9 an end. Read backwards, both "
            "are what it did not say.",
            "no answer": "“No answer” is something the model can say, with [CLS]. It has not.",
            "the pair i ≤ j with the best sum, which may contain neither": "Scores are for pairs. Of all legal pairs "
            "the best sum wins, and both favourites may lose.",
        },
        answer="c",
        guess=guess,
    )
