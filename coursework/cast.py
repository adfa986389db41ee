"""The sentences that come back in every unit, written for this course.

Each has a word of two meanings, and what decides between them stands to its right: a model that reads only from
left to right meets the word too early. Every sentence is short enough to draw as a 16 × 16 map.
"""

CAST = {
    # an animal, then a stamp of wax: the same word twice, and the first "seal" has nothing but "The" before it
    "seal": "The seal broke the seal on the letter and swam home.",
    # a struck match or a football match? Only "candle" says; see TWINS for the other ending
    "match": "The match was over before the candle was lit.",
    # the keyboard, close by, points the wrong way; the cheese, at the end, settles it
    "mouse": "The mouse beside the keyboard ran off with the cheese.",
    # a hand or a tree: "her" says hand, the parrot says tree
    "palm": "Her palm was green, and a parrot lived in it.",
    # a story or a piece of land: a bad review until the potatoes come
    "plot": "The plot was thin, yet potatoes grew in it.",
    # over water, or under strings: "violinmaker" is no piece of BERT's vocabulary and becomes violin + ##maker
    "bridge": "The bridge was too thin, so the violinmaker carved another.",
}

# The same beginning with another ending, which gives the first noun its other meaning.
TWINS = {
    "seal": "The seal broke in the heat, and the letter fell open.",
    "match": "The match was over before the whistle was blown.",
    "mouse": "The mouse beside the keyboard ran out of battery.",
    "palm": "Her palm was green, and she washed it with soap.",
    "plot": "The plot was thin, yet critics loved it.",
    "bridge": "The bridge was too thin, so the engineers closed the road.",
}

# What comes next in the story: a second sentence for pairs (units 02 and 05). No other sentence of NEXT fits.
NEXT = {
    "seal": "It had waited for news from the north since March.",
    "match": "We ate our soup in the dark.",
    "mouse": "Nobody has typed a word since.",
    "palm": "Every morning it greets the postman by name.",
    "plot": "The author fried them with onions.",
    "bridge": "This time the strings did not buzz.",
}
