package org.alberttf;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Reads the fields of a protobuf message, one after the other. Every error is an {@link InputException}. */
final class ProtobufReader {
    private static final int VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5;

    private final byte[] data;
    private final String source;
    private final int end;
    private int place;
    private int wireType;

    /** Reads {@code data}; {@code source} names it in messages. */
    ProtobufReader(byte[] data, String source) {
        this(data, 0, data.length, source);
    }

    private ProtobufReader(byte[] data, int start, int end, String source) {
        this.data = data;
        this.place = start;
        this.end = end;
        this.source = source;
    }

    /** The number of the next field, of which the value must be read or skipped; 0 at the end. */
    int nextField() {
        if (place == end) {
            return 0;
        }
        long tag = varint();
        wireType = (int) (tag & 7);
        long field = tag >>> 3;
        if (field < 1 || field > 0x1fffffff) {
            throw damaged("field number " + field);
        }
        return (int) field;
    }

    /** The value of a field of whole numbers or booleans. */
    long number() {
        expect(VARINT, "a whole number");
        return varint();
    }

    /** The value of a field of 32-bit floating point numbers. */
    float real() {
        expect(FIXED_32, "a 32-bit number");
        return ByteBuffer.wrap(data, advance(4), 4).order(ByteOrder.LITTLE_ENDIAN).getFloat();
    }

    /** The value of a field of bytes. */
    byte[] bytes() {
        int start = block("bytes");
        return Arrays.copyOfRange(data, start, place);
    }

    /** The value of a field of text. */
    String text() {
        int start = block("text");
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data, start, place - start)).toString();
        } catch (CharacterCodingException error) {
            throw damaged("bytes that are no UTF-8 text");
        }
    }

    /** The value of a field that is a message. */
    ProtobufReader message() {
        int start = block("a message");
        return new ProtobufReader(data, start, place, source);
    }

    /** Passes over the value of a field. */
    void skip() {
        if (wireType == VARINT) {
            varint();
        } else if (wireType == FIXED_64) {
            advance(8);
        } else if (wireType == BYTES) {
            block("bytes");
        } else if (wireType == FIXED_32) {
            advance(4);
        } else {
            throw damaged("a field of wire type " + wireType);
        }
    }

    private int block(String kind) {
        expect(BYTES, kind);
        long length = varint();
        if (length < 0 || length > end - place) {
            throw damaged("a field of " + length + " bytes where " + (end - place) + " are left");
        }
        return advance((int) length);
    }

    private void expect(int type, String kind) {
        if (wireType != type) {
            throw damaged("wire type " + wireType + " in a field of " + kind);
        }
    }

    private long varint() {
        long value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            byte next = data[advance(1)];
            value |= (long) (next & 127) << shift;
            if (next >= 0) {
                return value;
            }
        }
        throw damaged("a number of more than ten bytes");
    }

    /** Goes on by so many bytes; returns the place of the first. */
    private int advance(int count) {
        if (count > end - place) {
            throw damaged("an end within a field");
        }
        place += count;
        return place - count;
    }

    private InputException damaged(String found) {
        return new InputException(
                source + ": expected a SentencePiece model, found " + found + " before byte " + place
                        + "; the file is damaged or of another kind");
    }
}
