"""Questions of lesson 09."""

from coursework.quiz import quiz


def where_the_verdict_is(guess: str = ""):
    return quiz(
        "You may read a hundred words of a long film review, all in one place. Where do you learn most often whether "
        "the writer liked the film?",
        {
            "at the beginning": "In a newspaper, perhaps. Here people begin with when they saw it, and with whom.",
            "in the middle": "There the story is told. Terrible things happen in good films.",
            "at the end": "A reviewer who has told the story comes to the point: see it, or don't. The counts below "
            "show by how much.",
            "it makes no difference": "Nearly: each place tells something. But one of them stands out.",
        },
        answer="c",
        guess=guess,
    )


def four_windows(guess: str = ""):
    return quiz(
        "The work of attention grows with the square of the length. A text of 512 tokens is cut into four windows of "
        "128. How much of BERT-base's work is saved?",
        {
            "three quarters": "That is what attention's scores save: four times 128² is a quarter of 512². But they "
            "are a small part of the work.",
            "about half": "A fair middle between two feelings, but it can be counted: attention's two products are a "
            "tenth of the work at 512 tokens, so no more than that can be saved.",
            "less than a tenth": "At 512 tokens nine tenths of the work are matrix products that each token needs, "
            "however long the text is. Cutting does not touch them.",
        },
        answer="c",
        guess=guess,
    )


def more_overlap(guess: str = ""):
    return quiz(
        "Windows side by side read each piece once. With a stride of half a window nearly all pieces are read twice, "
        "and no short sentence is torn at a border without being whole elsewhere. What does the judge of films gain?",
        {
            "several per cent": "Many programs do it by default, so it must be worth something? A verdict is said in "
            "many sentences; few of them lie on a border.",
            "nothing that one can measure here": "And it costs twice as much. For an answer that is *one* span of "
            "words, as in unit 10, overlap is another matter.",
            "it loses much": "The same pieces are read in both ways. Why would the mean change much?",
        },
        answer="b",
        guess=guess,
    )
