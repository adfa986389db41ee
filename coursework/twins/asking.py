"""What lesson 11 asks of the twins: a piece at one place, a hole filled by reading on, a text continued."""

import torch
from torch import Tensor

from bert_minimal import WordPiece
from bert_minimal.heads import MaskedLM


@torch.inference_mode()
def scores_at(twin: MaskedLM, ids: Tensor, place: int) -> Tensor:
    """(B, S) ids -> (B, V), the twin's scores at one place: of the hidden piece (BERT), of the next one (GPT)."""
    wanted = torch.zeros_like(ids, dtype=torch.bool)
    wanted[:, place] = True
    return twin(input_ids=ids, masked_positions=wanted).logits


@torch.inference_mode()
def fill_by_reading_on(gpt: MaskedLM, row: Tensor, hole: int, most: int = 30) -> int:
    """GPT fills place `hole` of a row (S,): each of its `most` likeliest pieces is put in, and the probability of
    the whole row decides. What stands in the hole is not read."""
    guesses = scores_at(gpt, row[None, :hole], hole - 1)[0].topk(most).indices
    filled = row.repeat(most, 1)
    filled[:, hole] = guesses
    places = torch.zeros_like(filled, dtype=torch.bool)
    places[:, hole - 1 : -1] = True  # from the hole to the end: what stands before it is the same in all
    logits = gpt(input_ids=filled, masked_positions=places).logits.log_softmax(-1)
    log_p = logits.gather(1, filled[:, hole:].reshape(-1, 1)).view(most, -1).sum(1)
    return int(guesses[log_p.argmax()])


def go_on(twin: MaskedLM, tokenizer: WordPiece, text: str, count: int, blank: bool) -> str:
    """The text and `count` more pieces, the likeliest each time. blank: ask with a [MASK] at the end, as BERT wants."""
    ids, first = tokenizer(text).input_ids[:-1], max(tokenizer.special_ids) + 1
    for _ in range(count):
        asked = [*ids, tokenizer.mask_id] if blank else ids
        scores = scores_at(twin, torch.tensor([asked]), len(asked) - 1)[0]
        ids.append(int(scores[first:].argmax()) + first)  # no [SEP]: go on
    return " ".join(tokenizer.pieces[i] for i in ids[1:]).replace(" ##", "")
