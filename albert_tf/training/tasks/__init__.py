"""How each task is fine-tuned: what its files hold, what its head needs to know, what its rows should give."""
