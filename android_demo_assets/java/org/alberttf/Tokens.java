package org.alberttf;

import java.util.Arrays;

/** The pieces of a text, without special tokens. */
public final class Tokens {
    /** Ids (tokens). */
    public final int[] ids;
    /**
     * The chars of the text that each piece stands for, end excluded: {@code text.substring(starts[i], ends[i])} is
     * what it was made of, whatever the text rules did to it. Empty for a piece that is only the mark for a space.
     */
    public final int[] starts, ends;

    Tokens(int[] ids, int[] starts, int[] ends) {
        this.ids = ids;
        this.starts = starts;
        this.ends = ends;
    }

    /** The tokens from a first to a last, which is excluded. */
    Tokens part(int from, int to) {
        return new Tokens(
                Arrays.copyOfRange(ids, from, to), Arrays.copyOfRange(starts, from, to),
                Arrays.copyOfRange(ends, from, to));
    }
}
