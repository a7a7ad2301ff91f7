package org.alberttf;

/**
 * The normaliser that a SentencePiece model carries, for one word at a time: a map of replacements of which the longest
 * that fits wins, "▁" for spaces and in front (Normalizer::Normalize of sentencepiece). The map is the size of a trie,
 * the trie over UTF-8 (a double array of darts-clone), and the replacements, each ended by NUL.
 */
final class ModelNormalizer {
    private static final int REPLACEMENT = 0xfffd;

    private final byte[] map;
    private final int unitCount; // 0: there is no map
    private final int targets; // where they begin
    private final boolean changesAscii;

    /** Takes the map of a model; an empty one changes nothing. */
    ModelNormalizer(byte[] map, String source) {
        this.map = map;
        if (map.length == 0) {
            unitCount = targets = 0;
            changesAscii = false;
            return;
        }
        long size = map.length < 4 ? -1 : word(0) & 0xffffffffL;
        if (size < 0 || size % 4 != 0 || size >= map.length - 4) {
            throw new InputException(
                    source + ": expected a normalisation map with a trie, found " + map.length
                            + " bytes with a trie of " + size + "; the file is damaged");
        }
        unitCount = (int) size / 4;
        targets = 4 + (int) size;
        changesAscii = unitCount > 0 && hasAsciiRule();
    }

    /** Whether a word, given without the mark in front, has that put in front and is left alone otherwise. */
    boolean leavesAlone(CodePoints part, int start, int end) {
        if (changesAscii) {
            return false;
        }
        for (int i = start; i < end; i++) {
            if (part.values[i] < 0x20 || part.values[i] > 0x7e) {
                return false;
            }
        }
        return true;
    }

    /**
     * The characters {@code start} to {@code end} of a text, normalised. The sources count from {@code start}; behind
     * the last character (at {@code size}) there is one source more, the end of what was read.
     */
    CodePoints normalize(CodePoints part, int start, int end) {
        Utf8 input = new Utf8(part, start, end);
        CodePoints result = new CodePoints(end - start + 2);
        int place = 0;
        Prefix prefix = new Prefix();
        while (place < input.size) {
            prefix.read(input, place);
            if (prefix.size != 1 || prefix.values[0] != ' ') {
                break;
            }
            place += prefix.consumed;
        }
        if (place < input.size) {
            result.add(SentencePieceModel.WORD_START, input.characters[place]);
        }
        boolean afterSpace = true;
        while (place < input.size) {
            prefix.read(input, place);
            int first = 0;
            while (afterSpace && first < prefix.size && prefix.values[first] == ' ') {
                first++;
            }
            for (int i = first; i < prefix.size; i++) {
                boolean isSpace = prefix.values[i] == ' ';
                result.add(isSpace ? SentencePieceModel.WORD_START : prefix.values[i], input.characters[place]);
                afterSpace = isSpace;
            }
            place += prefix.consumed;
        }
        int consumed = input.characters[place];
        while (result.size > 0 && result.values[result.size - 1] == SentencePieceModel.WORD_START) {
            consumed = result.sources[--result.size];
        }
        result.add(0, consumed);
        result.size--;
        return result;
    }

    /** Whether the trie has a rule for printable ASCII characters alone. */
    private boolean hasAsciiRule() {
        boolean[] seen = new boolean[unitCount]; // in a damaged map a way may lead back
        int[] nodes = new int[unitCount];
        int count = 1; // nodes[0] is the root
        seen[0] = true;
        while (count > 0) {
            int node = nodes[--count];
            int children = node ^ offset(unit(node));
            for (int label = '!'; label <= '~'; label++) {
                int child = children ^ label;
                if (isUnit(child) && label(unit(child)) == label && !seen[child]) {
                    if (hasValue(unit(child))) {
                        return true;
                    }
                    seen[child] = true;
                    nodes[count++] = child;
                }
            }
        }
        return false;
    }

    private boolean isUnit(int index) {
        return index >= 0 && index < unitCount;
    }

    private int unit(int index) {
        return word(4 + 4 * index);
    }

    private int word(int at) {
        return map[at] & 255 | (map[at + 1] & 255) << 8 | (map[at + 2] & 255) << 16 | map[at + 3] << 24;
    }

    private static int label(int unit) {
        return unit & 0x800000ff;
    }

    private static int offset(int unit) {
        return unit >>> 10 << ((unit & 0x200) >> 6);
    }

    private static boolean hasValue(int unit) {
        return (unit >>> 8 & 1) != 0;
    }

    /** What the beginning of a text becomes, and how much of it that is. */
    private final class Prefix {
        int[] values = new int[8];
        int size;
        int consumed; // bytes

        void read(Utf8 input, int start) {
            int value = -1;
            int node = 0;
            consumed = 0;
            if (unitCount > 0) {
                node = offset(unit(0));
                for (int place = start; place < input.size; place++) {
                    int label = input.bytes[place] & 255;
                    node ^= label;
                    if (!isUnit(node) || label(unit(node)) != label) {
                        break;
                    }
                    int unit = unit(node);
                    node ^= offset(unit);
                    if (hasValue(unit) && isUnit(node)) {
                        value = unit(node) & 0x7fffffff;
                        consumed = place + 1 - start;
                    }
                }
            }
            size = 0;
            if (value >= 0) {
                readTarget(value);
            } else if (start > 0 && input.characters[start] == input.characters[start - 1]) {
                add(REPLACEMENT); // a rule of a damaged map has ended within a character
                consumed = 1;
            } else {
                add(input.values[input.characters[start]]);
                consumed = input.lengthAt(start);
            }
        }

        private void readTarget(int value) {
            int place = targets + value;
            while (place >= 0 && place < map.length && map[place] != 0) {
                int lead = map[place] & 255;
                int more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
                int character = lead & (more == 0 ? 0x7f : 0x3f >> more);
                for (int i = 1; i <= more; i++) {
                    character = character << 6 | (place + i < map.length ? map[place + i] & 0x3f : 0);
                }
                add(Math.min(character, Character.MAX_CODE_POINT));
                place += more + 1;
            }
        }

        private void add(int character) {
            if (size == values.length) {
                values = java.util.Arrays.copyOf(values, 2 * size);
            }
            values[size++] = character;
        }
    }

    /** Characters as UTF-8, and for each byte, and the end, the number of the character. */
    private static final class Utf8 {
        private static final int[] LEADS = {0, 0xc0, 0xe0, 0xf0};

        final byte[] bytes;
        final int[] characters;
        final int[] values;
        int size;

        Utf8(CodePoints text, int start, int end) {
            values = java.util.Arrays.copyOfRange(text.values, start, end);
            bytes = new byte[4 * values.length];
            characters = new int[bytes.length + 1];
            for (int i = 0; i < values.length; i++) {
                int value = values[i];
                int more = value < 0x80 ? 0 : value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
                put(LEADS[more] | value >> 6 * more, i);
                for (int shift = 6 * (more - 1); shift >= 0; shift -= 6) {
                    put(0x80 | value >> shift & 0x3f, i);
                }
            }
            characters[size] = values.length;
        }

        /** How many bytes the character has of which the first is at a place. */
        int lengthAt(int start) {
            int end = start + 1;
            while (end < size && characters[end] == characters[start]) {
                end++;
            }
            return end - start;
        }

        private void put(int value, int character) {
            bytes[size] = (byte) value;
            characters[size++] = character;
        }
    }
}
