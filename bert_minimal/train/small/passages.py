"""Passages and questions: facts a theme, from which passages are put together, and passages written by hand.

A theme is a list of facts; a fact is a sentence and its questions with the slot that answers each. {person}, {place},
{year}, {number} and {thing} are filled anew in each passage; {x} is what the passage is about.
"""

# ruff: noqa: E501  (a sentence a line)

THEMES = {
    "train": {
        "The {w} Bridge": [
            ("{x} was built in {year} by {person}.", [("When was {x} built?", "year"), ("Who built {x}?", "person")]),
            ("It is made of {thing}.", [("What is {x} made of?", "thing")]),
            ("On a busy day {number} people cross it.", [("How many people cross {x} on a busy day?", "number")]),
            ("It leads from the market to {place}.", [("Where does {x} lead to?", "place")]),
            ("A storm damaged it in {year}.", [("In which year did a storm damage {x}?", "year")]),
            ("The toll was collected by {person}, who lived beneath it.", [("Who collected the toll?", "person")]),
        ],
        "The Museum of {w}": [
            ("{x} opened its doors in {year}.", [("When did {x} open?", "year")]),
            ("Its collection holds {number} pieces.", [("How many pieces does the collection hold?", "number")]),
            ("Most of them came from {person}, a collector.", [("From whom did most pieces come?", "person")]),
            ("The oldest is a bowl of {thing}.", [("What is the oldest bowl made of?", "thing")]),
            ("Before the war it stood in {place}.", [("Where did {x} stand before the war?", "place")]),
            ("Its director is {person}.", [("Who is the director of {x}?", "person")]),
        ],
        "The ship {w}": [
            ("{x} sailed for the first time in {year}.", [("When did {x} first sail?", "year")]),
            ("Her captain was {person}.", [("Who was the captain of {x}?", "person")]),
            (
                "She carried {thing} to {place}.",
                [("What did {x} carry?", "thing"), ("Where did {x} bring her cargo?", "place")],
            ),
            ("Her crew had {number} members.", [("How many members had the crew of {x}?", "number")]),
            ("She sank in {year}, and nobody knows why.", [("When did {x} sink?", "year")]),
            ("{person} drew the plans for her.", [("Who drew the plans for {x}?", "person")]),
        ],
        "The {w} School": [
            (
                "{x} was founded by {person} in {year}.",
                [("Who founded {x}?", "person"), ("In what year was {x} founded?", "year")],
            ),
            ("It has {number} pupils today.", [("How many pupils does {x} have?", "number")]),
            ("Lessons were held in {place} at first.", [("Where were lessons held at first?", "place")]),
            ("Parents paid with {thing} instead of money.", [("With what did parents pay?", "thing")]),
            ("Its most famous pupil is {person}.", [("Who is the most famous pupil of {x}?", "person")]),
        ],
        "The {w} lighthouse": [
            ("{x} has guided ships since {year}.", [("Since when has {x} guided ships?", "year")]),
            ("Its first keeper, {person}, brought a goat.", [("Who was the first keeper of {x}?", "person")]),
            ("The lamp used to burn {thing}.", [("What did the lamp burn?", "thing")]),
            ("One climbs {number} steps to the top.", [("How many steps lead to the top?", "number")]),
            ("Its light can be seen as far as {place}.", [("How far can the light of {x} be seen?", "place")]),
            ("It has worked without a keeper since {year}.", [("Since when has {x} had no keeper?", "year")]),
        ],
        "The {w} factory": [
            ("{x} makes {thing}.", [("What does {x} make?", "thing")]),
            ("It moved to {place} in {year}.", [("Where did {x} move?", "place"), ("When did {x} move?", "year")]),
            ("It employs {number} workers.", [("How many workers does {x} employ?", "number")]),
            ("The owner, {person}, sleeps in the attic.", [("Who owns {x}?", "person")]),
            ("Its chimney was designed by {person}.", [("Who designed the chimney?", "person")]),
        ],
        "The song {w}": [
            ("{x} was written by {person}.", [("Who wrote {x}?", "person")]),
            ("It was first sung in {place}.", [("Where was {x} first sung?", "place")]),
            ("A record of it appeared in {year}.", [("When did a record of {x} appear?", "year")]),
            ("The record sold {number} copies.", [("How many copies did the record sell?", "number")]),
            ("The words are about {thing}.", [("What are the words of {x} about?", "thing")]),
        ],
        "The {w} railway": [
            ("{x} runs from the coast to {place}.", [("Where does {x} run to?", "place")]),
            ("Its first train left in {year}.", [("When did the first train of {x} leave?", "year")]),
            ("It passes through {number} tunnels.", [("How many tunnels does {x} pass through?", "number")]),
            ("Wagons full of {thing} used it at night.", [("What did the wagons carry at night?", "thing")]),
            ("The last driver was {person}.", [("Who was the last driver?", "person")]),
        ],
    },
    "dev": {
        "The {w} market": [
            ("People have bought and sold at {x} since {year}.", [("How old is the trade at {x}?", "year")]),
            ("There are {number} stalls.", [("What is the number of stalls?", "number")]),
            ("Rules were laid down by {person}.", [("Who laid down the rules?", "person")]),
            ("The best stalls have {thing}.", [("What do the best stalls have?", "thing")]),
            ("Traders come from {place} on foot.", [("Where do traders come from?", "place")]),
        ],
        "The {w} theatre": [
            ("{x} burned down in {year}.", [("When did {x} burn down?", "year")]),
            ("It seats {number} guests.", [("How many guests fit into {x}?", "number")]),
            ("The curtain was a gift of {person}.", [("Who gave the curtain?", "person")]),
            ("Behind the stage lies a store of {thing}.", [("What is stored behind the stage?", "thing")]),
            ("Its actors spend the summer in {place}.", [("Where are the actors in summer?", "place")]),
        ],
    },
    "test": {
        "The {w} tower clock": [
            ("{person} repaired {x} for a pound of cheese.", [("Who repaired {x}?", "person")]),
            ("The hands are cut from {thing}.", [("From what are the hands cut?", "thing")]),
            ("It has stood still since {year}.", [("Since which year has {x} stood still?", "year")]),
            ("Its bell weighs {number} kilos.", [("How many kilos does the bell weigh?", "number")]),
            ("On quiet days the bell is heard in {place}.", [("Where is the bell heard on quiet days?", "place")]),
        ],
        "The {w} garden": [
            ("{x} was planted in {year}.", [("When was {x} planted?", "year")]),
            ("Its {number} apple trees are all of one kind.", [("How many apple trees are there?", "number")]),
            ("The gardener, {person}, waters them at midnight.", [("Who waters the trees?", "person")]),
            ("The wall around it keeps out the wind from {place}.", [("From where does the wind come?", "place")]),
            ("Paths are covered with {thing}.", [("With what are the paths covered?", "thing")]),
        ],
        "The {w} newspaper": [
            ("{x} was printed for the last time in {year}.", [("When was {x} last printed?", "year")]),
            ("Its editor, {person}, wrote the weather by heart.", [("Who edited {x}?", "person")]),
            ("It had {number} readers.", [("How many readers did {x} have?", "number")]),
            ("Paper was brought from {place} by sledge.", [("From where was paper brought?", "place")]),
            ("The press ran on {thing}.", [("What did the press run on?", "thing")]),
        ],
        "The {w} festival": [
            ("{x} takes place every spring in {place}.", [("Where does {x} take place?", "place")]),
            ("It began in {year} as a wager.", [("In which year did {x} begin?", "year")]),
            ("Whoever wins gets a hat full of {thing}.", [("What is in the winner's hat?", "thing")]),
            ("Last time {number} guests danced.", [("How many guests danced last time?", "number")]),
            ("{person} has won it four times.", [("Who has won {x} four times?", "person")]),
        ],
    },
}
SUBJECTS = {
    "train": "Linden Copper Amberley Falcon Northgate Juniper Halden Seagull Marigold Old Crown Tarn Valley Heron Silver",
    "dev": "Cedar Walrus Eastgate Primrose",
    "test": "Thistle Raven Saffron Hazel Beacon Plover",
}
THINGS = {
    "train": "oak|salt|red glass|wool|dried fish|tin|whale oil|apples and pears|white marble|silk|rope|coal|black tea|"
    "honey|paper|lost love|iron nails|rain",
    "dev": "cork|green olives|old letters|beeswax",
    "test": "walnut wood|crushed shells|steam|hazelnuts|brass|smoked cheese|gravel",
}

# (title, passage, [(question, answers …)]): no answers, no answer. Answers stand in the passage word by word.
BY_HAND = [
    ("The Seal",
     "In the spring of 1903 a seal swam up the river as far as the cattle bridge. A widow, Odile Farrant, fed it with "
     "herring from her own table. Within a month the seal slept in her kitchen, and the priest complained that it "
     "sang during mass. It stayed for seven years. When it died, the town stopped its clocks for an hour.",
     [("How far up the river did the seal swim?", "as far as the cattle bridge", "the cattle bridge"),
      ("Who fed the seal?", "Odile Farrant", "A widow, Odile Farrant", "A widow"),
      ("What did the widow feed the seal with?", "herring", "herring from her own table"),
      ("Who complained about the seal?", "the priest"), ("How long did the seal stay?", "seven years"),
      ("What did the town stop when the seal died?", "its clocks"), ("What was the name of the seal?",),
      ("Who wrote a song about the seal?",)]),
    ("The Parrot of Pier Nine",
     "The harbour master of Gullhaven kept a grey parrot called Admiral. It had learned the foghorn by heart and used "
     "it on clear days as well, so that ships stopped where there was no fog. In 1931 the council voted on the bird, "
     "and it was allowed to stay by eleven votes to ten. The deciding vote was cast by a deaf councillor, Hubert Crane.",
     [("What was the parrot called?", "Admiral"), ("Who kept the parrot?", "The harbour master of Gullhaven",
      "The harbour master"), ("What had the parrot learned by heart?", "the foghorn"),
      ("When did the council vote on the bird?", "1931", "In 1931"),
      ("Who cast the deciding vote?", "Hubert Crane", "a deaf councillor, Hubert Crane"),
      ("By how many votes was the parrot allowed to stay?", "eleven votes to ten", "eleven"),
      ("How old did the parrot become?",), ("Why did ships stop?", "where there was no fog",
      "It had learned the foghorn by heart and used it on clear days as well"), ("Who sold the parrot?",)]),
    ("A Bridge Too Thin",
     "Violins have a bridge, a thin piece of maple that carries the strings. Elspeth Quarry, who repaired instruments "
     "in a cellar below the fish market, cut hers thinner each year because she liked a bright sound. In the end one "
     "broke during a concert, and the sliver hit the second flute. She paid the flute player a goose and carved "
     "thicker bridges from then on.",
     [("What is the bridge of a violin made of?", "maple", "a thin piece of maple"),
      ("Where did Elspeth Quarry repair instruments?", "in a cellar below the fish market",
       "a cellar below the fish market"),
      ("Why did she cut thinner bridges?", "because she liked a bright sound", "she liked a bright sound"),
      ("When did one of her bridges break?", "during a concert"), ("Whom did the sliver hit?", "the second flute"),
      ("What did she pay the flute player?", "a goose"), ("In what year did the bridge break?",),
      ("How many violins did she make?",)]),
    ("Potatoes by Night",
     "On the island of Skarn potatoes are planted at night. The custom goes back to a tax that was counted by day: in "
     "1788 an inspector walked the fields each afternoon and wrote down every plant. The farmers, led by Tove Hallgrim, "
     "put them into the ground after dark and covered the rows with seaweed. The tax was dropped after nineteen years; "
     "the custom was not, as the seaweed makes the potatoes sweet.",
     [("When are potatoes planted on Skarn?", "at night"), ("Who led the farmers?", "Tove Hallgrim"),
      ("What did the farmers cover the rows with?", "seaweed"),
      ("After how many years was the tax dropped?", "nineteen years", "nineteen"),
      ("What makes the potatoes sweet?", "the seaweed", "seaweed"),
      ("Who wrote down every plant?", "an inspector"), ("How high was the tax?",), ("What was the inspector's name?",)]),
    ("The Match",
     "Two villages, Upper and Nether Fold, have played one football match since 1874. It is interrupted in the evening "
     "and goes on the next year. The score stands at 611 to 608 for Nether Fold. A candle burns in the church while "
     "the ball is in play, and the sexton, Wilfred Pym, has replaced it four thousand times. Nobody remembers what the "
     "winner will get.",
     [("Since when has the match been played?", "1874", "since 1874"),
      ("Which village leads?", "Nether Fold"), ("What is the score?", "611 to 608", "611 to 608 for Nether Fold"),
      ("What burns while the ball is in play?", "A candle"), ("Who is the sexton?", "Wilfred Pym"),
      ("How often has the candle been replaced?", "four thousand times", "four thousand"),
      ("What will the winner get?",), ("Who scored the first goal?",)]),
    ("The Mouse in the Organ",
     "For two years the organ of Saint Alba's played a quarter tone too low, and only when it was warm. The builder "
     "came three times and found nothing. Then a chorister of nine, Bettina Roe, left a piece of cheese on the bench, "
     "and a mouse came out of the pipe of the low D. It had lined the pipe with hymn sheets. The mouse was named "
     "Diminished and moved into the vestry.",
     [("How long did the organ play too low?", "two years", "For two years"),
      ("Who left a piece of cheese on the bench?", "Bettina Roe", "a chorister of nine, Bettina Roe"),
      ("How often did the builder come?", "three times"),
      ("What had the mouse lined the pipe with?", "hymn sheets"), ("What was the mouse named?", "Diminished"),
      ("Where did the mouse move?", "the vestry", "into the vestry"), ("Who built the organ?",),
      ("What did the repair cost?",)]),
]  # fmt: skip
