"""The layers of ALBERT, written with keras.ops.

Letters for dimensions, the same in every docstring and comment:
    B  batch            T  query positions     S  key positions (T = S here)
    E  embedding width  H  hidden width        N  attention heads    D  head width, H / N
    I  feed-forward width                      V  vocabulary size    P  predicted (masked) positions
"""
