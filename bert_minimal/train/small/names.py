"""Sentences with names: patterns and name lists, a set for each part. {P} a person, {L} a place, {O} a company.

Some names are also plain words (Baker, Winter, Marsh, Bishop), and plain words stand where names could, so that a
list of names or of capitals is not enough.
"""

# ruff: noqa: E501  (a sentence a line)

PEOPLE = {
    "train": (
        "Anna Otto Mira Tomas Ines Ruben Klara Emil Petra Joost Sanna Hugo Lotte Marek Alma Felix Nadia Oskar",
        "Velder Oskamp Baker Winter Lindqvist Moreau Tanaka Okoye Brandt Field Petrov Castell Young Harun Weaver Duarte",
    ),
    "dev": ("Greta Pavel Iris Yusuf Elena Bruno", "Hollis Miller Sorensen Achterberg Summers Ibarra"),
    "test": (
        "Ada Viktor Rose Kenji Salma Leon Marta Idris Flora Anton",
        "Marsh Bishop Rautio Delacroix Stone Nakamura Osei Fisher Wolff Kaminski",
    ),
}
PLACES = {
    "train": "Sandwick|Port Amel|Lower Tarn|Grauburg|Velsk|Isola Nera|Kettering Bay|Ostermoor|Ruvan|Mount Hale|"
    "Dunwater|Sankt Brun|Alderney Cross|Toma|Novaro|East Lyme|Brightwell|Kalmos|Red Harbour|Pell",
    "dev": "Hexley|Puerto Sol|North Gully|Varnholm|Ebba|Cold Spring|Merrow",
    "test": "Thornby|Lake Orsa|Quillan|Great Wend|Zell|Cape Meridian|Ashcombe|Bellmore|Ulvik|Monte Chiaro|Stillwater",
}
COMPANIES = {
    "train": "Oskamp Ferries|Lantern Press|Tarn Valley Bank|Northern Glass|Amber Motors|Brunner and Sons|Radio Velsk|"
    "Silver Mill|Polar Airways|Union of Beekeepers|Hale Observatory|Castle Theatre|Green Anchor|Weaver Institute",
    "dev": "Harvest Foods|Sorensen Shipping|Club Merrow|Paper Moon|College of Tides|Blue Tram",
    "test": "Marsh Optics|Granite Insurance|Ulvik Railways|Copper Kettle|Society of Lamplighters|Wend Daily|"
    "Fisher Laboratories|Opera Zell|Iron Bridge Brewery|Stone Records",
}
PATTERNS = {
    "train": """
{P} was born in {L} and never left .
In {L} , {P} opened a small shop for clocks .
{O} has sold its last boat to {P} .
The letter from {P} reached {L} in March .
Nobody at {O} knew where {P} had gone .
{P} and {P} met on the ferry to {L} .
Last winter {O} closed its office in {L} .
A young baker from {L} bought the field behind the mill .
{P} , who works for {O} , speaks five languages .
The road between {L} and {L} is under water again .
" {P} is late " , said the conductor .
Police in {L} are looking for a grey violin .
{O} will pay for the new roof , its director {P} said .
The winter was so cold that the lake froze for the young skaters .
Mayor {P} thanked the beekeepers of {L} .
Every Monday {P} takes the train to {L} .
{O} and {O} will build the bridge together .
Doctor {P} refused the prize .
Three hundred people in {L} signed the letter .
The parrot belongs to {P} .
After ten years at {O} , {P} became a weaver .
Two ships of {O} lie in the harbour of {L} .
" Come to {L} " , wrote {P} on a postcard .
The potatoes come from {L} , the onions do not .
{P} played the violin at the wedding of {P} .
Shares of {O} fell by a third on Friday .
From {L} one can see the islands on a clear day .
The old director of {O} is buried near {L} .
A mouse ate the contract between {O} and {P} .
There is no bank , no school and no bridge in this village .
{P} lost the match against {P} in {L} .
Who paid for the candle , {P} or the theatre ?
The engineers of {O} measured the bridge twice .
Snow fell on {L} while {P} was asleep .
{L} has no railway , but {O} runs a bus .
The seal was seen near {L} by a weaver .
Our guide , {P} , had never been to {L} .
A spokesman of {O} did not want to answer .
""",
    "dev": """
{P} grew up above a bakery in {L} .
Yesterday {O} named {P} as its new head .
The storm reached {L} before the miller had closed the gate .
It was {P} who painted the door green .
Tickets of {O} are not valid in {L} .
The summers here are short , the spring is cold .
" I have never heard of {O} " , answered {P} .
Half of the houses in {L} are empty .
{P} sued {O} and won .
A bus from {L} to {L} takes four hours .
""",
    "test": """
Without {P} there would be no museum in {L} .
{O} hired forty people this autumn .
A fisher found the stone under the marsh at low tide .
Nothing grows on the hills above {L} , not even thistles .
{P} has been the voice of {O} since 1998 .
The concert in {L} was cancelled because {P} had a cold .
For years {P} sent her rent to {O} .
" We are leaving {L} " , {P} told her neighbours .
The bishop rose early and walked along the iron bridge .
Neither {O} nor {O} wants the old warehouse .
Twice a week a helicopter brings bread to {L} .
{P} sold {O} to {P} for one coin .
The jury gave the medal to {P} from {L} .
Customers of {O} waited in the rain .
One of the lamps in {L} still burns with gas .
When {P} retired , {O} gave her a copper kettle .
""",
}
BY_HAND = """
[P Flora Rautio] keeps bees on the roof of the [O Wend Daily] .
The last lamplighter of [L Great Wend] is called [P Idris Stone] .
Stone is what they sell , and stone is what they eat , people say of [L Ulvik] .
Has anyone told [P Leon Fisher] that a fisher from [L Zell] has his coat ?
The marsh was drained by [P Ada Marsh] in a single summer .
[O Copper Kettle] serves fish on Fridays and soup when it rains .
In May the [O Society of Lamplighters] moved from [L Ashcombe] to [L Bellmore] .
[P Bishop] said nothing ; the bishop said even less .
He went to [L Monte Chiaro] for the air , and stayed for [P Marta Kaminski] .
A rose is not a reason to call your daughter [P Rose] .
[P Salma Osei] founded [O Fisher Laboratories] with the money of an aunt .
Between [L Thornby] and the sea lies nothing but grass .
The parrot learned to say “ [O Granite Insurance] ” and would not stop .
It took [P Anton Wolff] nine winters to count the islands .
[O Opera Zell] owes its new curtain to [P Kenji Nakamura] , a butcher .
No train stops in [L Quillan] , yet [O Ulvik Railways] sells tickets for it .
When the dam broke , [P Viktor Delacroix] was playing cards in [L Stillwater] .
Who would insure a violin ? [O Granite Insurance] would .
The iron bridge was sold , and [O Iron Bridge Brewery] kept its name .
[P Ada Rautio] , [P Ada Marsh] and a third Ada share one bicycle .
"""
