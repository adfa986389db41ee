"""Questions of lesson 05."""

from coursework.quiz import quiz


def which_label(guess: str = ""):
    return quiz(
        "A checkpoint of BERT gives the scores `[4.1, −3.0]` for a pair, and 0 and 1 are the numbers of the classes. "
        "What does it say?",
        {
            "B follows A": "Class 0 has the higher score, and in BERT 0 is IsNext. It is the other way round from what "
            "one would choose, so look twice before you write a label.",
            "B does not follow A": "It is tempting to read class 0 as “no” and 1 as “yes”. Here the question behind "
            "the classes is “is B random?”: 0 is IsNext, 1 is NotNext.",
            "nothing, before the two are added up": "Two scores are no vote count. Softmax turns them into "
            "probabilities of the two classes: 0.999 and 0.001.",
        },
        answer="a",
        guess=guess,
    )


def bag_of_words(guess: str = ""):
    return quiz(
        "A bag of words knows only which words stand in A, in B or in both, not their order. How many of the pairs "
        "(half of them IsNext) does it get right, on pages it has never seen?",
        {
            "50 %: word order is needed to know what comes next": "To know what comes *next*, yes. But the false B is "
            "from another book, and books do not share their names and topics. That gives it away.",
            "about 70 %": "A whale in both, or Emma on one side only: topic alone tells many pairs apart, in "
            "segments of a few sentences.",
            "nearly 100 %: other books have other words": "Many a segment holds no name and no rare word, and “he”, "
            "“the” and “said” stand in all books. The longer the segments, the more there is to go by.",
        },
        answer="b",
        guess=guess,
    )


def swapped(guess: str = ""):
    return quiz(
        "The course's own BERT answers nearly seven in eight held-out next-sentence questions right. We take true "
        "pairs and swap A and B. To how many of these does it say IsNext?",
        {
            "hardly any: a swapped pair is in the wrong order": "That is what “next” means to us. But in training the "
            "false B was always from another text; a swapped pair was never shown as wrong.",
            "about half: it has never seen such pairs, so it guesses": "It has not seen them, and it has no doubts: "
            "what it has learned to look for, the same topic, is all there.",
            "most of them, nearly as many as of true pairs": "It looks for what told IsNext from NotNext in training, "
            "and that was whether both are from one text.",
        },
        answer="c",
        guess=guess,
    )
