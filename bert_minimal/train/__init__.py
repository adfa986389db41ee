"""Training: data, the loop, pre-training, fine-tuning, metrics. The model itself needs none of it."""
