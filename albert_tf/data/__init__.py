"""Files of labelled text in, batches of model inputs out."""
