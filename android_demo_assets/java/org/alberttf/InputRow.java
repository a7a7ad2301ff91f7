package org.alberttf;

import java.util.Arrays;

/** One input of the model: token ids, segment ids and mask, equally long. */
public final class InputRow {
    /** Token ids, special tokens included. */
    public final int[] tokenIds;
    /** 0 up to the first [SEP], 1 after it. */
    public final int[] segmentIds;
    /** 1 for tokens, 0 for padding. */
    public final int[] paddingMask;
    /** The chars that each token stands for in the text of its segment; 0 and 0 for special tokens and padding. */
    public final int[] starts, ends;
    /** How many tokens there are, without padding. */
    public final int length;

    private InputRow(int[] tokenIds, int[] segmentIds, int[] paddingMask, int[] starts, int[] ends, int length) {
        this.tokenIds = tokenIds;
        this.segmentIds = segmentIds;
        this.paddingMask = paddingMask;
        this.starts = starts;
        this.ends = ends;
        this.length = length;
    }

    /**
     * [CLS] first [SEP], or [CLS] first [SEP] second [SEP], at most {@code maxLength} tokens; a single text loses its
     * end. Of two the longer one loses its last token until both fit; of equally long ones the second
     * (albert_tf/tokenization/packing.py).
     */
    static InputRow of(Tokens first, Tokens second, SentencePieceModel model, int maxLength) {
        int room = maxLength - (second == null ? 2 : 3);
        int sizeA = first.ids.length, sizeB = second == null ? 0 : second.ids.length;
        int keptA = second == null ? Math.min(sizeA, room) : Math.min(sizeA, Math.max(room - sizeB, (room + 1) / 2));
        int keptB = Math.min(sizeB, Math.max(room - sizeA, room / 2));
        int length = second == null ? keptA + 2 : keptA + keptB + 3;
        InputRow row = new InputRow(
                new int[length], new int[length], new int[length], new int[length], new int[length], length);
        Arrays.fill(row.paddingMask, 1);
        row.tokenIds[0] = model.clsId;
        row.put(first, keptA, 1);
        row.tokenIds[keptA + 1] = model.sepId;
        if (second != null) {
            row.put(second, keptB, keptA + 2);
            row.tokenIds[length - 1] = model.sepId;
            Arrays.fill(row.segmentIds, keptA + 2, length, 1);
        }
        return row;
    }

    /**
     * The row with padding behind it, for a file that takes so many tokens only.
     *
     * @throws InputException the row is longer
     */
    public InputRow padded(int tokens, int padId) {
        if (length > tokens) {
            throw new InputException("padded: the row has " + length + " tokens, expected at most " + tokens);
        }
        int[] ids = Arrays.copyOf(tokenIds, tokens);
        Arrays.fill(ids, length, tokens, padId);
        return new InputRow(
                ids, Arrays.copyOf(segmentIds, tokens), Arrays.copyOf(paddingMask, tokens),
                Arrays.copyOf(starts, tokens), Arrays.copyOf(ends, tokens), length);
    }

    private void put(Tokens tokens, int kept, int place) {
        System.arraycopy(tokens.ids, 0, tokenIds, place, kept);
        System.arraycopy(tokens.starts, 0, starts, place, kept);
        System.arraycopy(tokens.ends, 0, ends, place, kept);
    }
}
