package org.alberttf;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON: objects are maps, lists are lists, numbers are Doubles, the rest are Strings, Booleans and null. */
final class Json {
    private static final int DEEPEST = 100;

    private final String text;
    private final String source;
    private int place;

    private Json(String text, String source) {
        this.text = text;
        this.source = source;
    }

    /** The object that a file holds. */
    static Map<String, Object> object(byte[] file, String source) {
        String text;
        try {
            text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(file)).toString();
        } catch (CharacterCodingException error) {
            throw new InputException(source + ": expected JSON, found bytes that are no UTF-8 text");
        }
        Json reader = new Json(text, source);
        Object value = reader.value(0);
        reader.skipSpaces();
        if (reader.place < text.length() || !(value instanceof Map)) {
            throw new InputException(source + ": expected one JSON object, found something else");
        }
        return asObject(value);
    }

    /** An object in an object; empty where there is none. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> asObject(Object value) {
        return value instanceof Map ? (Map<String, Object>) value : new LinkedHashMap<String, Object>();
    }

    /** A whole number, at least {@code least}. */
    static int whole(Object value, int least, String name) {
        if (value instanceof Double && (Double) value >= least && (Double) value == Math.rint((Double) value)
                && (Double) value <= Integer.MAX_VALUE) {
            return ((Double) value).intValue();
        }
        throw new InputException(name + ": expected a whole number of at least " + least + ", found " + value);
    }

    private Object value(int depth) {
        skipSpaces();
        char first = peek();
        if (depth > DEEPEST) {
            throw damaged("no more than " + DEEPEST + " brackets within each other");
        }
        if (first == '{') {
            return objectAt(depth);
        }
        if (first == '[') {
            return listAt(depth);
        }
        if (first == '"') {
            return string();
        }
        for (String word : new String[] {"true", "false", "null"}) {
            if (text.startsWith(word, place)) {
                place += word.length();
                return first == 'n' ? null : (Object) (first == 't');
            }
        }
        return number();
    }

    private Map<String, Object> objectAt(int depth) {
        Map<String, Object> result = new LinkedHashMap<>();
        place++;
        skipSpaces();
        if (peek() == '}') {
            place++;
            return result;
        }
        while (true) {
            skipSpaces();
            String name = string();
            skipSpaces();
            take(':');
            result.put(name, value(depth + 1));
            skipSpaces();
            if (peek() == '}') {
                place++;
                return result;
            }
            take(',');
        }
    }

    private List<Object> listAt(int depth) {
        List<Object> result = new ArrayList<>();
        place++;
        skipSpaces();
        if (peek() == ']') {
            place++;
            return result;
        }
        while (true) {
            result.add(value(depth + 1));
            skipSpaces();
            if (peek() == ']') {
                place++;
                return result;
            }
            take(',');
        }
    }

    private String string() {
        take('"');
        StringBuilder result = new StringBuilder();
        while (peek() != '"') {
            char next = text.charAt(place++);
            result.append(next == '\\' ? escaped() : next);
        }
        place++;
        return result.toString();
    }

    private char escaped() {
        char kind = peek();
        place++;
        int plain = "\"\\/bfnrt".indexOf(kind);
        if (plain >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(plain);
        }
        if (kind != 'u' || place + 4 > text.length()) {
            throw damaged("an escape sequence");
        }
        try {
            place += 4;
            return (char) Integer.parseInt(text.substring(place - 4, place), 16);
        } catch (NumberFormatException error) {
            throw damaged("four hexadecimal digits");
        }
    }

    private Double number() {
        int start = place;
        while (place < text.length() && "+-.0123456789eE".indexOf(text.charAt(place)) >= 0) {
            place++;
        }
        try {
            return Double.valueOf(text.substring(start, place));
        } catch (NumberFormatException error) {
            throw damaged("a value");
        }
    }

    private void skipSpaces() {
        while (place < text.length() && " \t\r\n".indexOf(text.charAt(place)) >= 0) {
            place++;
        }
    }

    private char peek() {
        if (place >= text.length()) {
            throw damaged("more: it ends too early");
        }
        return text.charAt(place);
    }

    private void take(char wanted) {
        if (peek() != wanted) {
            throw damaged("'" + wanted + "'");
        }
        place++;
    }

    private InputException damaged(String expected) {
        String found = place < text.length() ? "'" + text.charAt(place) + "'" : "the end";
        return new InputException(
                source + ": not JSON: expected " + expected + " at character " + place + ", found " + found);
    }
}
