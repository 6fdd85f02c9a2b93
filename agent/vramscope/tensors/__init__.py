"""What the live memory of a training process belongs to: parameters, gradients, and the rest."""
