"""A multiple-choice question in a notebook, without widgets: it shows on GitHub and in the saved page too.

Each choice unfolds to its explanation. In a live notebook a reader commits first: the letter goes into `guess`.
The questions stand in `coursework/quizzes/`, one module a unit, so that a cell does not give its answer away.
"""

import html
import re


def quiz(question: str, choices: dict[str, str], answer: str, guess: str = ""):
    """The question, its choices with their folded explanations, and what the guess was worth.

    Args:
        question: Markdown's `code` is understood, nothing else.
        choices: what can be chosen -> why one would think so and why it is (not) so; letters are given in order.
        answer: the letter of the right one.
        guess: the reader's letter; "" for none yet.
    Returns:
        an IPython HTML object.
    Raises:
        ValueError: `answer` or `guess` is no letter of a choice.
    """
    from IPython.display import HTML

    letters = "abcdefgh"[: len(choices)]
    if answer not in letters or len(answer) != 1:
        raise ValueError(f"answer must be one of {', '.join(letters)}, not {answer!r}")
    guess = guess.strip().lower()
    if guess and (guess not in letters or len(guess) != 1):
        raise ValueError(f"a guess is one of the letters {', '.join(letters)}, not {guess!r}")
    rows = []
    for letter, (choice, why) in zip(letters, choices.items(), strict=True):
        mark = "✓ Yes." if letter == answer else "✗ No."
        opened = " open" if letter == guess else ""
        rows.append(
            f'<details{opened} style="margin:0.4em 0"><summary style="cursor:pointer"><b>{letter}</b>&ensp;'
            f"{_text(choice)}</summary>"
            f'<div style="margin:0.3em 0 0.3em 1.9em"><b>{mark}</b> {_text(why)}</div></details>'
        )
    if not guess:
        said = 'Put your letter between the quotes of <code>guess=""</code> and run the cell, or unfold your choice.'
    elif guess == answer:
        said = f"<b>You said {guess}, and {guess} it is.</b>"
    else:
        said = f"<b>You said {guess}.</b> Read why it tempts and why it isn't so; then choose again."
    return HTML(
        '<div style="border-left:4px solid #0072B2;padding:0.2em 1em">'
        f'<div style="margin:0.3em 0"><b>Predict first.</b> {_text(question)}</div>{"".join(rows)}'
        f'<div style="margin:0.5em 0 0.3em">{said}</div></div>'
    )


def _text(words: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words, quote=False))
