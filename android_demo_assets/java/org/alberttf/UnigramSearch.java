package org.alberttf;

import java.util.Arrays;

/**
 * The most likely segmentation of a word under a unigram language model. Sums are of 32-bit numbers, and of equal ones
 * the first found stays, as in albert_tf/tokenization/unigram.py: so ties are decided alike.
 */
final class UnigramSearch {
    private static final float UNKNOWN_PENALTY = 10f;

    private final PieceTrie trie;
    private final int unknownId;
    private final float unknownScore;

    UnigramSearch(SentencePieceModel model) {
        trie = new PieceTrie(model);
        unknownId = model.unknownId;
        float least = 0f;
        for (int id = 0; id < model.size; id++) {
            if (model.isText(id)) {
                least = Math.min(least, model.scores[id]);
            }
        }
        unknownScore = least - UNKNOWN_PENALTY;
    }

    /**
     * Cuts up a word that begins with "▁".
     *
     * @return the id of each piece and the character before which it ends, in turn
     */
    int[] segment(int[] word, int length) {
        float[] scores = new float[length + 1];
        int[] starts = new int[length + 1];
        int[] ids = new int[length + 1];
        Arrays.fill(scores, Float.NEGATIVE_INFINITY);
        Arrays.fill(ids, PieceTrie.NONE);
        scores[0] = 0f;
        for (int start = 0; start < length; start++) {
            float before = scores[start];
            int node = trie.child(0, word[start]);
            if (node == PieceTrie.NONE || trie.ids[node] == PieceTrie.NONE) {
                float score = afterUnknown(word[start], before);
                if (score > scores[start + 1]) {
                    scores[start + 1] = score;
                    starts[start + 1] = ids[start] == unknownId ? starts[start] : start;
                    ids[start + 1] = unknownId;
                }
            }
            for (int end = start + 1; node != PieceTrie.NONE; end++) {
                if (trie.ids[node] != PieceTrie.NONE) {
                    float score = before + trie.scores[node];
                    if (score > scores[end]) {
                        scores[end] = score;
                        starts[end] = start;
                        ids[end] = trie.ids[node];
                    }
                }
                node = end < length ? trie.child(node, word[end]) : PieceTrie.NONE;
            }
        }
        int count = 0;
        for (int end = length; end > 0; end = starts[end]) {
            count++;
        }
        int[] found = new int[2 * count];
        for (int end = length; end > 0; end = starts[end]) {
            found[2 * --count] = ids[end];
            found[2 * count + 1] = end;
        }
        return found;
    }

    /** The penalty for a character that is no piece counts once for every byte of its UTF-8 form. */
    private float afterUnknown(int character, float score) {
        int bytes = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
        for (int i = 0; i < bytes; i++) {
            score += unknownScore;
        }
        return score;
    }
}
