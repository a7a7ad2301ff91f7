package org.alberttf;

import java.util.Arrays;

/** The pieces of text of a vocabulary as a trie: from a node, by a character, to a node. The root is 0. */
final class PieceTrie {
    static final int NONE = -1;

    private static final long FIBONACCI = 0x9e3779b97f4a7c15L;
    private static final int CHARACTER_BITS = 21;

    /** The id of the piece that ends at a node, or NONE. */
    int[] ids = new int[1 << 12];
    /** Its score. */
    float[] scores = new float[1 << 12];

    private int nodes = 1;
    // Node and character, plus 1 → child; 0 is free.
    private long[] keys = new long[1 << 13];
    private int[] children = new int[1 << 13];

    PieceTrie(SentencePieceModel model) {
        Arrays.fill(ids, NONE);
        for (int id = 0; id < model.size; id++) {
            if (model.isText(id)) {
                insert(model.pieces[id], id, model.scores[id]);
            }
        }
        ids = Arrays.copyOf(ids, nodes);
        scores = Arrays.copyOf(scores, nodes);
    }

    /** The child of a node, or NONE. */
    int child(int node, int character) {
        long key = ((long) node << CHARACTER_BITS | character) + 1;
        int slot = slot(key);
        return keys[slot] == key ? children[slot] : NONE;
    }

    /** Whether the character alone is a piece. */
    boolean isPiece(int character) {
        int node = child(0, character);
        return node != NONE && ids[node] != NONE;
    }

    private void insert(String piece, int id, float score) {
        int node = 0;
        for (int i = 0; i < piece.length(); ) {
            int character = piece.codePointAt(i);
            i += Character.charCount(character);
            int child = child(node, character);
            node = child == NONE ? newChild(node, character) : child;
        }
        ids[node] = id;
        scores[node] = score;
    }

    private int newChild(int node, int character) {
        if (2 * nodes >= keys.length) {
            grow();
        }
        if (nodes == ids.length) {
            ids = Arrays.copyOf(ids, 2 * nodes);
            scores = Arrays.copyOf(scores, 2 * nodes);
            Arrays.fill(ids, nodes, 2 * nodes, NONE);
        }
        put(((long) node << CHARACTER_BITS | character) + 1, nodes);
        return nodes++;
    }

    private void grow() {
        long[] oldKeys = keys;
        int[] oldChildren = children;
        keys = new long[2 * oldKeys.length];
        children = new int[keys.length];
        for (int i = 0; i < oldKeys.length; i++) {
            if (oldKeys[i] != 0) {
                put(oldKeys[i], oldChildren[i]);
            }
        }
    }

    private void put(long key, int child) {
        int slot = slot(key);
        keys[slot] = key;
        children[slot] = child;
    }

    /** Where the key is, or where it would go. */
    private int slot(long key) {
        int mask = keys.length - 1;
        int slot = (int) (key * FIBONACCI >>> 40) & mask;
        while (keys[slot] != 0 && keys[slot] != key) {
            slot = slot + 1 & mask;
        }
        return slot;
    }
}
