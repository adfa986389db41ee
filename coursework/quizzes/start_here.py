"""Questions of lesson 00."""

from coursework.quiz import quiz


def both_sides(guess: str = ""):
    return quiz(
        "“The match was over before the candle was lit.” At which word can a reader know that nobody played football?",
        {
            "at “match”": "It feels so once you know the ending: your mind goes back and repairs the start. "
            "But cover everything after “match” with your hand: both meanings are open.",
            "at “over”": "A football match can be over, and so can a burning match. Even “over” does not decide.",
            "at “candle”": "Up to here the sentence could go on with “the whistle was blown”. "
            "What settles the second word is the seventh.",
        },
        answer="c",
        guess=guess,
    )
