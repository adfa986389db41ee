"""Questions of lesson 03."""

from coursework.quiz import quiz


def epistemology(guess: str = ""):
    return quiz(
        "`epistemology` is not one of BERT's 30,522 pieces. How is it cut?",
        {
            "epi · stem · ology, by its parts": "So a dictionary would do it. But nobody told the "
            "vocabulary about Greek. It knows letters and counts.",
            "ep · iste · mology": "The longest piece that begins this word is `ep`. Then the longest that fits the "
            "rest, `##iste`, and so on. No part means anything; the model has to learn what they say together.",
            "into its twelve letters": "That would be so if nothing longer fitted. All letters are in the vocabulary, "
            "but they are the last resort.",
            "it becomes [UNK], unknown": "That was the fate of rare words before pieces. Here a word of plain letters "
            "is never unknown, as each letter is a piece.",
        },
        answer="b",
        guess=guess,
    )


def rare_character(guess: str = ""):
    return quiz(
        "BERT's vocabulary has `letter`. It does not have the character 😀. What becomes of “letter😀”, without "
        "a space?",
        {
            "letter, and the 😀 is dropped": "A kind thought: keep what is known. But then nobody could see that "
            "something is missing.",
            "letter, then [UNK]": "One would expect it, and many texts say so. But 😀 is no punctuation, so it is all "
            "one word, and a word is either cut completely or not at all.",
            "[UNK], all of it": "One part that no piece covers makes the whole word unknown. The model does not "
            "even learn that there was a letter.",
        },
        answer="c",
        guess=guess,
    )


def first_merge(guess: str = ""):
    return quiz(
        "We train on Alice in Wonderland, by the ratio. The most frequent pair of letters is `##h ##e` (as in “the”). "
        "Which pair is merged first?",
        {
            "##h ##e, the most frequent": "This is byte-pair encoding's rule. The ratio divides by how often h and e "
            "occur anyway, and both are everywhere.",
            "##i ##n, as in “thing”": "Also frequent letters: they meet often because there are many of both.",
            "##z ##z, as in “puzzle”": "z is rare, and where there is one there is mostly a second. That is what the "
            "ratio rewards: not often together, but seldom apart.",
        },
        answer="c",
        guess=guess,
    )
