package org.alberttf;

import java.util.Base64;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * What the text rules ask of a character. The answers are those of Python's Unicode database, whatever version of
 * Unicode the device has: so ids are the same on every device.
 */
final class UnicodeTables {
    static final int HANGUL = 0xac00, HANGUL_END = 0xd7a4;

    private static final int PAGE_BITS = 8, PAGE = 1 << PAGE_BITS, PAGES = 0x110000 >> PAGE_BITS;
    private static final int LEADING = 0x1100, VOWELS = 0x1161, TRAILING = 0x11a7;
    private static final int VOWEL_COUNT = 21, TRAILING_COUNT = 28;
    private static final UnicodeTables ALL = new UnicodeTables();

    private final byte[] numbers;
    private int place;
    private final int[][][] decomposed, lower;
    private final boolean[][] cased, caseIgnorable, word, digit, space;

    private UnicodeTables() {
        numbers = unpacked();
        decomposed = readMap();
        lower = readMap();
        cased = readSet();
        caseIgnorable = readSet();
        word = readSet();
        digit = readSet();
        space = readSet();
    }

    /**
     * The compatibility decomposition (NFKD) of a character without its combining marks; null: the character itself.
     */
    static int[] decomposed(int character) {
        if (character >= HANGUL && character < HANGUL_END) {
            return syllable(character - HANGUL);
        }
        return found(ALL.decomposed, character);
    }

    /** The lower case of a character; null: the character itself. Capital sigma depends on its neighbours. */
    static int[] lower(int character) {
        return found(ALL.lower, character);
    }

    /** Whether it is a letter with case which {@link #isCaseIgnorable} is not. */
    static boolean isCased(int character) {
        return holds(ALL.cased, character);
    }

    /** Whether capital sigma looks past it for a letter. */
    static boolean isCaseIgnorable(int character) {
        return holds(ALL.caseIgnorable, character);
    }

    /** Whether it is a letter, a digit or another number: Python's str.isalnum. */
    static boolean isWord(int character) {
        return holds(ALL.word, character);
    }

    /** Whether it is a digit, also a raised one: Python's str.isdigit. */
    static boolean isDigit(int character) {
        return holds(ALL.digit, character);
    }

    /** Whether it is whitespace: Python's str.isspace. */
    static boolean isSpace(int character) {
        return holds(ALL.space, character);
    }

    private static int[] syllable(int index) {
        int first = LEADING + index / (VOWEL_COUNT * TRAILING_COUNT);
        int second = VOWELS + index % (VOWEL_COUNT * TRAILING_COUNT) / TRAILING_COUNT;
        int third = index % TRAILING_COUNT;
        return third == 0 ? new int[] {first, second} : new int[] {first, second, TRAILING + third};
    }

    private static int[] found(int[][][] map, int character) {
        int[][] page = map[character >> PAGE_BITS];
        return page == null ? null : page[character & PAGE - 1];
    }

    private static boolean holds(boolean[][] set, int character) {
        boolean[] page = set[character >> PAGE_BITS];
        return page != null && page[character & PAGE - 1];
    }

    /** See tests/java/unicode_data.py for the order of the numbers. */
    private int[][][] readMap() {
        int[][][] map = new int[PAGES][][];
        int character = 0, last = 0;
        for (int left = number(); left > 0; left--) {
            character += number();
            int[] target = new int[number()];
            for (int i = 0; i < target.length; i++) {
                int coded = number();
                last += coded >>> 1 ^ -(coded & 1);
                target[i] = last;
            }
            int page = character >> PAGE_BITS;
            if (map[page] == null) {
                map[page] = new int[PAGE][];
            }
            map[page][character & PAGE - 1] = target;
        }
        return map;
    }

    private boolean[][] readSet() {
        boolean[][] set = new boolean[PAGES][];
        int character = 0;
        for (int left = number(); left > 0; left--) {
            character += number();
            for (int end = character + number(); character < end; character++) {
                int page = character >> PAGE_BITS;
                if (set[page] == null) {
                    set[page] = new boolean[PAGE];
                }
                set[page][character & PAGE - 1] = true;
            }
        }
        return set;
    }

    private int number() {
        int value = 0;
        for (int shift = 0; ; shift += 7) {
            byte next = numbers[place++];
            value |= (next & 127) << shift;
            if (next >= 0) {
                return value;
            }
        }
    }

    private static byte[] unpacked() {
        Inflater inflater = new Inflater();
        try {
            inflater.setInput(Base64.getDecoder().decode(UnicodeData.PACKED));
            byte[] result = new byte[1 << 16];
            int count = inflater.inflate(result);
            if (!inflater.finished()) {
                throw new IllegalStateException("UnicodeData: expected at most " + result.length + " bytes");
            }
            return java.util.Arrays.copyOf(result, count);
        } catch (DataFormatException error) {
            throw new IllegalStateException("UnicodeData: damaged", error);
        } finally {
            inflater.end();
        }
    }
}
