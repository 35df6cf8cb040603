"""Table 1 of the paper, rebuilt: whole training steps of eight models on rushlight and on its peers."""
