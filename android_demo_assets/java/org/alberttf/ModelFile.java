package org.alberttf;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;

/**
 * What a {@code .tflite} file of albert-tf carries behind its model (export/metadata.py): settings, labels, tokenizer.
 * The buffer may be the mapped file that the interpreter is given, too; it is left as it is.
 */
public final class ModelFile {
    private static final int CENTRAL = 0x02014b50, END = 0x06054b50, LOCAL = 0x04034b50;
    private static final int CENTRAL_SIZE = 46, END_SIZE = 22, LOCAL_SIZE = 30;
    private static final String SETTINGS = "albert_tf.json";

    /** The name of the task, such as "classification". */
    public final String task;
    /** The labels in the order of the model's outputs; empty for a task without. */
    public final List<String> labels;
    /** The settings of the task, numbers as Doubles. */
    public final Map<String, Object> settings;
    /** The lengths in tokens that the file takes, from the least on; empty: any. */
    public final List<Integer> lengths;
    /** The file's tokenizer, cut to what its model takes. */
    public final AlbertTokenizer tokenizer;

    private final ByteBuffer file;
    private final boolean manySignatures;
    private final int modelBytes;
    private final Object modelSum;

    /**
     * Reads a file.
     *
     * @throws InputException not a file by albert-tf, damaged, or with a WordPiece vocabulary
     */
    public ModelFile(ByteBuffer tflite) {
        file = tflite.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        file.rewind();
        if (file.limit() < 8 || file.getInt(4) != 0x334c4654) {
            throw new InputException("expected a TFLite file, got something else (no TFL3 mark at byte 4)");
        }
        Map<String, byte[]> files;
        try {
            files = read();
        } catch (IndexOutOfBoundsException error) {
            throw damaged("a place beyond its end");
        }
        if (!files.containsKey(SETTINGS)) {
            throw damaged("no " + SETTINGS);
        }
        Map<String, Object> all = Json.object(files.get(SETTINGS), SETTINGS);
        if (!Double.valueOf(1).equals(all.get("format")) || !(all.get("task") instanceof String)) {
            throw new InputException(SETTINGS + ": expected format 1 and a task, found format " + all.get("format"));
        }
        task = (String) all.get("task");
        settings = Collections.unmodifiableMap(Json.asObject(all.get("settings")));
        labels = labels(settings.get("labels"));
        manySignatures = all.get("length") instanceof List;
        lengths = lengths(all.get("length"));
        modelBytes = Json.whole(all.get("model_bytes"), 1, SETTINGS + ": model_bytes");
        modelSum = all.get("model_sha256");
        if (!files.containsKey("tokenizer.json") || !files.containsKey("vocabulary.spm")) {
            throw damaged("no tokenizer.json with a vocabulary.spm; WordPiece vocabularies are not read here");
        }
        AlbertTokenizer read = AlbertTokenizer.of(files.get("vocabulary.spm"), files.get("tokenizer.json"));
        Map<String, Object> config = Json.asObject(all.get("config"));
        int longest = Json.whole(config.get("max_sequence_length"), 1, SETTINGS + ": max_sequence_length");
        int words = Json.whole(config.get("vocabulary_size"), 1, SETTINGS + ": vocabulary_size");
        if (words != read.model.size) {
            throw damaged("a tokenizer of " + read.model.size + " pieces beside a model of " + words + " words");
        }
        longest = lengths.isEmpty() ? longest : Math.min(longest, lengths.get(lengths.size() - 1));
        tokenizer = read.withMaxLength(Math.min(read.maxLength, longest));
    }

    /**
     * Reads the whole model and compares its sum with the one that the file records. For files that were downloaded: the
     * native runtime trusts what it is given, and a damaged model can end the process.
     *
     * @throws InputException they differ
     */
    public void checkModel() {
        StringBuilder sum = new StringBuilder();
        try {
            ByteBuffer model = file.duplicate();
            model.limit(Math.min(modelBytes, model.limit()));
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(model);
            for (byte value : digest.digest()) {
                sum.append(Character.forDigit(value >> 4 & 15, 16)).append(Character.forDigit(value & 15, 16));
            }
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error); // every Java has it
        }
        if (!sum.toString().equals(modelSum)) {
            throw damaged("a model of the sha256 " + sum + " where " + modelSum + " is recorded");
        }
    }

    /** The name of the signature that takes so many tokens. */
    public String signature(int tokens) {
        return manySignatures ? "length_" + length(tokens) : "serving_default";
    }

    /** The row as the file takes it: padded to the least of its lengths that is enough, or as it is. */
    public InputRow fitted(InputRow row) {
        int tokens = length(row.length);
        return tokens == row.tokenIds.length ? row : row.padded(tokens, tokenizer.model.padId);
    }

    private int length(int tokens) {
        for (int length : lengths) {
            if (length >= tokens) {
                return length;
            }
        }
        if (lengths.isEmpty()) {
            return tokens;
        }
        throw new InputException("it takes at most " + lengths.get(lengths.size() - 1) + " tokens, got " + tokens);
    }

    /** The files in the zip archive behind the model, which are stored as they are. */
    private Map<String, byte[]> read() {
        int end = file.limit() - END_SIZE;
        while (end >= 0 && end > file.limit() - END_SIZE - 0x10000 && file.getInt(end) != END) {
            end--;
        }
        if (end < 0 || file.getInt(end) != END) {
            throw damaged("no archive behind its model");
        }
        int count = size(end + 10);
        int place = end - file.getInt(end + 12);
        int shift = place - file.getInt(end + 16); // where the archive counts from
        Map<String, byte[]> files = new HashMap<>();
        for (int i = 0; i < count; i++) {
            if (file.getInt(place) != CENTRAL) {
                throw damaged("no entry at byte " + place);
            }
            int nameLength = size(place + 28);
            String name = new String(bytes(place + CENTRAL_SIZE, nameLength), StandardCharsets.UTF_8);
            int local = shift + file.getInt(place + 42);
            if (file.getShort(place + 10) != 0 || file.getInt(local) != LOCAL) {
                throw damaged("a packed or misplaced " + name);
            }
            int start = local + LOCAL_SIZE + size(local + 26) + size(local + 28);
            byte[] content = bytes(start, file.getInt(place + 24));
            CRC32 sum = new CRC32();
            sum.update(content);
            if ((int) sum.getValue() != file.getInt(place + 16)) {
                throw damaged("a wrong sum of " + name);
            }
            files.put(name, content);
            place += CENTRAL_SIZE + nameLength + size(place + 30) + size(place + 32);
        }
        return files;
    }

    /** The 16-bit number at a place. */
    private int size(int place) {
        return file.getShort(place) & 0xffff;
    }

    private byte[] bytes(int start, int size) {
        if (start < 0 || size < 0 || size > file.limit() - start) {
            throw damaged("a file of " + size + " bytes at byte " + start);
        }
        byte[] result = new byte[size];
        ByteBuffer part = file.duplicate();
        part.position(start);
        part.get(result);
        return result;
    }

    private static List<String> labels(Object value) {
        List<String> labels = new ArrayList<>();
        for (Object label : value instanceof List ? (List<?>) value : Collections.emptyList()) {
            labels.add(String.valueOf(label));
        }
        return Collections.unmodifiableList(labels);
    }

    private static List<Integer> lengths(Object value) {
        List<Integer> lengths = new ArrayList<>();
        List<?> several = value instanceof List ? (List<?>) value : Collections.singletonList(value);
        for (Object length : several) {
            if (length != null) {
                lengths.add(Json.whole(length, 1, SETTINGS + ": length"));
            }
        }
        return Collections.unmodifiableList(lengths);
    }

    private static InputException damaged(String found) {
        return new InputException(
                "expected a whole TFLite file by albert-tf export tflite, found " + found + "; export it again");
    }
}
