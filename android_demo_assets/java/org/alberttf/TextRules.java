package org.alberttf;

/**
 * ALBERT's rules for the characters of a word (albert_tf/tokenization/rules.py): `` and '' become " ; compatibility
 * decomposition, and no combining marks; lower case, with the Greek final sigma; "▁" counts as a space; a lone
 * surrogate counts as U+FFFD.
 */
public final class TextRules {
    private static final int SIGMA = 0x3a3, SMALL_SIGMA = 0x3c3, FINAL_SIGMA = 0x3c2;
    private static final int REPLACEMENT = 0xfffd;

    /** Whether capitals become small letters. */
    public final boolean lower;
    /** Whether characters are left as they are composed, and marks stay. */
    public final boolean keepAccents;
    /** Whether `` and '' become the sign ". */
    public final boolean quotes;

    /** The options of {@code tokenizer.json}; published English models have {@code (true, false, false)}. */
    public TextRules(boolean lower, boolean keepAccents, boolean quotes) {
        this.lower = lower;
        this.keepAccents = keepAccents;
        this.quotes = quotes;
    }

    /** The characters of a word under the rules, a space for each "▁". The sources count the characters of the word. */
    CodePoints rewritten(CodePoints word) {
        CodePoints text = new CodePoints(word.size + 4);
        for (int i = 0; i < word.size; i++) {
            int character = word.values[i];
            boolean isQuote = quotes && (character == '`' || character == '\'');
            if (isQuote && i + 1 < word.size && word.values[i + 1] == character) {
                text.add('"', i++);
            } else {
                addDecomposed(character >= 0xd800 && character < 0xe000 ? REPLACEMENT : character, i, text);
            }
        }
        if (lower) {
            text = lowerCase(text);
        }
        for (int i = 0; i < text.size; i++) {
            if (text.values[i] == SentencePieceModel.WORD_START) {
                text.values[i] = ' ';
            }
        }
        return text;
    }

    private void addDecomposed(int character, int source, CodePoints text) {
        int[] target = keepAccents || character < 0x80 ? null : UnicodeTables.decomposed(character);
        if (target == null) {
            text.add(character, source);
            return;
        }
        for (int each : target) {
            text.add(each, source);
        }
    }

    private static CodePoints lowerCase(CodePoints text) {
        CodePoints result = new CodePoints(text.size);
        for (int i = 0; i < text.size; i++) {
            int character = text.values[i];
            int[] target = UnicodeTables.lower(character);
            if (character == SIGMA) {
                result.add(isFinalSigma(text, i) ? FINAL_SIGMA : SMALL_SIGMA, text.sources[i]);
            } else if (target == null) {
                result.add(character, text.sources[i]);
            } else {
                for (int each : target) {
                    result.add(each, text.sources[i]);
                }
            }
        }
        return result;
    }

    /** Whether a letter is before, and none behind (Final_Sigma of SpecialCasing.txt, as Python has it). */
    private static boolean isFinalSigma(CodePoints text, int place) {
        int before = place - 1;
        while (before >= 0 && UnicodeTables.isCaseIgnorable(text.values[before])) {
            before--;
        }
        if (before < 0 || !UnicodeTables.isCased(text.values[before])) {
            return false;
        }
        int after = place + 1;
        while (after < text.size && UnicodeTables.isCaseIgnorable(text.values[after])) {
            after++;
        }
        return after == text.size || !UnicodeTables.isCased(text.values[after]);
    }
}
