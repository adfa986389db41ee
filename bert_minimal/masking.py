"""Masked-LM corruption: which pieces to hide, what to put in their place, what to ask for.

Devlin et al. 2019, section 3.1 "Task #1" and appendix A.1. Of the pieces, 15 % are selected. One draw then
decides about each: 80 % become [MASK], 10 % some other piece, 10 % stay as they are. The model is asked for
the original at every selected place, and cannot know which of the three happened there: so it has to keep a
good vector for each token it reads, not just where it sees [MASK].

Called anew for each batch, the mask is *dynamic* (Liu et al. 2019, section 4.1): no text is ever masked twice
in the same way. Masking once and keeping the result is *static*.
"""

import torch
from torch import Tensor

from .heads import NO_LABEL

SELECTED = 0.15
BECOMES_MASK, BECOMES_RANDOM = 0.8, 0.1  # the rest stays


class Masking:
    """`masking = Masking(tokenizer)`, then `corrupted, labels = masking(input_ids, generator)`.

    whole_words: all pieces of a word are selected together ("whole word masking", which Google added to its
    code in May 2019, after the paper). Still 15 % of the pieces on average.
    """

    def __init__(self, tokenizer, probability: float = SELECTED, whole_words: bool = False):
        if not 0.0 < probability <= 1.0:
            raise ValueError(f"probability is {probability}; it is the share of pieces to select, in (0, 1]")
        self.probability, self.whole_words, self.mask_id = probability, whole_words, tokenizer.mask_id
        self.special = torch.zeros(len(tokenizer), dtype=torch.bool)  # (V,)
        self.special[tokenizer.special_ids] = True
        self.ordinary = (~self.special).nonzero().squeeze(1)  # what a random replacement is drawn from
        self.continues = torch.tensor([piece.startswith("##") for piece in tokenizer.pieces])  # (V,)

    def select(self, input_ids: Tensor, generator: torch.Generator) -> Tensor:
        """(…, S) ids -> (…, S) bool. [CLS], [SEP], [PAD], [UNK] and [MASK] are never selected."""
        special = self.special[input_ids]
        if self.whole_words:
            starts = ~self.continues[input_ids] | special
            starts[..., 1:] |= special[..., :-1]  # a text cut inside a word: its first piece starts one
            starts[..., 0] = True
            word = starts.flatten().cumsum(0).sub(1).view(input_ids.shape)  # 0 0 0 1 2 2 …
            chance = torch.rand(input_ids.numel(), generator=generator)[word]  # one draw a word
        else:
            chance = torch.rand(input_ids.shape, generator=generator)  # one draw a piece
        return (chance < self.probability) & ~special

    def __call__(
        self, input_ids: Tensor, generator: torch.Generator, at_most: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """input_ids (…, S), on the CPU -> what the model reads (…, S) and labels (…, S), -100 where not asked.

        `input_ids` itself is left as it is. `at_most` bounds how many are selected in all, for batches of
        fixed shape; which ones are spared is drawn too.
        """
        selected = self.select(input_ids, generator)
        if at_most is not None and (surplus := int(selected.sum()) - at_most) > 0:
            places = selected.flatten().nonzero().squeeze(1)
            spared = places[torch.randperm(len(places), generator=generator)[:surplus]]
            selected.view(-1)[spared] = False
        labels = torch.where(selected, input_ids, NO_LABEL)

        draw = torch.rand(input_ids.shape, generator=generator)  # one draw for three cases
        masked = selected & (draw < BECOMES_MASK)
        replaced = selected & (draw >= BECOMES_MASK) & (draw < BECOMES_MASK + BECOMES_RANDOM)
        random = self.ordinary[torch.randint(len(self.ordinary), input_ids.shape, generator=generator)]
        corrupted = torch.where(masked, self.mask_id, torch.where(replaced, random, input_ids))
        return corrupted.to(input_ids.dtype), labels
