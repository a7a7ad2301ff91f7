package org.alberttf;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * A SentencePiece model file, as it was published or trained: pieces, scores, and the normalisation map. Only unigram
 * models of whole words are taken, the kind that ALBERT has (albert_tf/tokenization/sentencepiece_model.py).
 */
public final class SentencePieceModel {
    /** The mark for a preceding space. */
    public static final int WORD_START = 0x2581;

    private static final String[] SPECIAL_PIECES = {"<pad>", "[CLS]", "[SEP]", "[MASK]"};
    private static final int NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6;
    private static final int UNIGRAM = 1;
    private static final int LONGEST_PIECE = 128; // characters
    private static final float GREATEST_SCORE = 1e6f;

    /** How many ids there are. */
    public final int size;
    /** Ids of the special pieces. */
    public final int padId, unknownId, clsId, sepId, maskId;

    final String[] pieces;
    final float[] scores;
    final byte[] charsmap;

    private final Map<String, Integer> ids = new HashMap<>();
    private final String source;
    private int[] types;
    // Fields of the two specifications, with the format's own defaults.
    private long modelType = UNIGRAM;
    private boolean whitespaceAsSuffix;
    private boolean dummyPrefix = true, withoutExtraSpaces = true, escapedSpaces = true;
    private byte[] readCharsmap = new byte[0];

    /**
     * Reads a model.
     *
     * @throws InputException not a SentencePiece model, damaged, or not of ALBERT's kind
     */
    public SentencePieceModel(byte[] model) {
        this(model, "SentencePiece model");
    }

    /**
     * Reads a model to the end of the stream, which is left open.
     *
     * @throws InputException not a SentencePiece model, damaged, or not of ALBERT's kind
     * @throws IOException the stream cannot be read
     */
    public SentencePieceModel(InputStream model) throws IOException {
        this(readAll(model));
    }

    SentencePieceModel(byte[] model, String source) {
        this.source = source;
        int[] count = {0};
        String[] readPieces = new String[1024];
        float[] readScores = new float[1024];
        types = new int[1024];
        ProtobufReader reader = new ProtobufReader(model, source);
        for (int field = reader.nextField(); field != 0; field = reader.nextField()) {
            if (field == 1) {
                if (count[0] == readPieces.length) {
                    readPieces = Arrays.copyOf(readPieces, 2 * count[0]);
                    readScores = Arrays.copyOf(readScores, 2 * count[0]);
                    types = Arrays.copyOf(types, 2 * count[0]);
                }
                readPiece(reader.message(), readPieces, readScores, count[0]++);
            } else if (field == 2) {
                readTrainer(reader.message());
            } else if (field == 3) {
                readNormalizer(reader.message());
            } else {
                reader.skip();
            }
        }
        size = count[0];
        pieces = Arrays.copyOf(readPieces, size);
        scores = Arrays.copyOf(readScores, size);
        types = Arrays.copyOf(types, size);
        charsmap = readCharsmap;
        checkKind();
        for (int id = 0; id < size; id++) {
            checkPiece(id);
        }
        unknownId = theUnknown();
        int[] special = new int[SPECIAL_PIECES.length];
        for (int i = 0; i < special.length; i++) {
            special[i] = idOf(SPECIAL_PIECES[i], -1);
            if (special[i] < 0) {
                throw new InputException(
                        source + ": expected the special pieces " + String.join(", ", SPECIAL_PIECES) + "; "
                                + SPECIAL_PIECES[i] + " is missing");
            }
        }
        padId = special[0];
        clsId = special[1];
        sepId = special[2];
        maskId = special[3];
    }

    /** The piece of an id, "▁" for a preceding space included. */
    public String piece(int id) {
        if (id < 0 || id >= size) {
            throw new InputException(
                    "token id " + id + ": expected 0 to " + (size - 1) + ", the ids of this vocabulary");
        }
        return pieces[id];
    }

    /** The id of a piece, or {@code otherwise} where there is no such piece. */
    public int idOf(String piece, int otherwise) {
        Integer id = ids.get(piece);
        return id == null ? otherwise : id;
    }

    /** Whether a text may contain the piece: it is neither a control piece nor the unknown one. */
    boolean isText(int id) {
        return types[id] == NORMAL || types[id] == USER_DEFINED;
    }

    /** Whether it is padding, unknown, [CLS], [SEP] or [MASK]. */
    boolean isSpecial(int id) {
        return id == padId || id == unknownId || id == clsId || id == sepId || id == maskId;
    }

    private void readPiece(ProtobufReader reader, String[] readPieces, float[] readScores, int id) {
        readPieces[id] = "";
        types[id] = NORMAL;
        for (int field = reader.nextField(); field != 0; field = reader.nextField()) {
            if (field == 1) {
                readPieces[id] = reader.text();
            } else if (field == 2) {
                readScores[id] = reader.real();
            } else if (field == 3) {
                types[id] = (int) Math.min(Math.max(reader.number(), 0), BYTE + 1);
            } else {
                reader.skip();
            }
        }
    }

    private void readTrainer(ProtobufReader reader) {
        for (int field = reader.nextField(); field != 0; field = reader.nextField()) {
            if (field == 3) {
                modelType = reader.number();
            } else if (field == 24) {
                whitespaceAsSuffix = reader.number() != 0;
            } else {
                reader.skip();
            }
        }
    }

    private void readNormalizer(ProtobufReader reader) {
        for (int field = reader.nextField(); field != 0; field = reader.nextField()) {
            if (field == 2) {
                readCharsmap = reader.bytes();
            } else if (field == 3) {
                dummyPrefix = reader.number() != 0;
            } else if (field == 4) {
                withoutExtraSpaces = reader.number() != 0;
            } else if (field == 5) {
                escapedSpaces = reader.number() != 0;
            } else {
                reader.skip();
            }
        }
    }

    private void checkKind() {
        StringBuilder wrong = new StringBuilder();
        appendUnless(modelType == UNIGRAM, "model_type=unigram", wrong);
        appendUnless(dummyPrefix, "add_dummy_prefix=true", wrong);
        appendUnless(withoutExtraSpaces, "remove_extra_whitespaces=true", wrong);
        appendUnless(escapedSpaces, "escape_whitespaces=true", wrong);
        appendUnless(!whitespaceAsSuffix, "treat_whitespace_as_suffix=false", wrong);
        if (wrong.length() > 0) {
            throw new InputException(
                    source + ": ALBERT vocabularies are SentencePiece models with " + wrong + "; this is not one");
        }
        boolean anyText = false;
        for (int id = 0; id < size; id++) {
            anyText |= isText(id);
        }
        if (!anyText) {
            throw new InputException(source + ": expected a SentencePiece model, found no pieces of text in it");
        }
    }

    private static void appendUnless(boolean right, String needed, StringBuilder wrong) {
        if (!right) {
            wrong.append(wrong.length() == 0 ? "" : ", ").append(needed);
        }
    }

    private void checkPiece(int id) {
        String piece = pieces[id];
        String name = source + ": piece " + id + " '" + piece.substring(0, Math.min(20, piece.length())) + "' ";
        int length = piece.codePointCount(0, piece.length());
        if (length == 0 || length > LONGEST_PIECE || !(Math.abs(scores[id]) <= GREATEST_SCORE)) {
            throw new InputException(
                    name + "has " + length + " characters and the score " + scores[id] + "; expected 1 to "
                            + LONGEST_PIECE + ", and a log probability");
        }
        if (types[id] == UNUSED) {
            throw new InputException(
                    name + "is unused: this is a copy for MediaPipe and Task Library, expected the vocabulary itself");
        }
        if (types[id] < NORMAL || types[id] > USER_DEFINED) {
            throw new InputException(name + "is of a type that ALBERT has not; expected text, control or unknown");
        }
        if (isText(id) && piece.indexOf(WORD_START, 1) >= 0) {
            throw new InputException(name + "spans a space; expected pieces of words");
        }
        if (ids.put(piece, id) != null) {
            throw new InputException(name + "is there twice; expected different pieces");
        }
    }

    private int theUnknown() {
        int found = -1, count = 0;
        for (int id = 0; id < size; id++) {
            if (types[id] == UNKNOWN) {
                found = id;
                count++;
            }
        }
        if (count != 1) {
            throw new InputException(
                    source + ": expected one piece for unknown characters, such as <unk>, found " + count);
        }
        return found;
    }

    static byte[] readAll(InputStream stream) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        byte[] part = new byte[1 << 16];
        for (int count = stream.read(part); count >= 0; count = stream.read(part)) {
            all.write(part, 0, count);
        }
        return all.toByteArray();
    }
}
