import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.alberttf.AlbertTokenizer;
import org.alberttf.AnswerSettings;
import org.alberttf.Classification;
import org.alberttf.FoundAnswer;
import org.alberttf.GoldenCheck;
import org.alberttf.InputException;
import org.alberttf.InputRow;
import org.alberttf.ModelFile;
import org.alberttf.QuestionAnswering;
import org.alberttf.Tagging;
import org.alberttf.Tokens;
import org.alberttf.Window;

/**
 * What tests in Python ask of the tokenizer and decoders: reads a line for each question from standard input, writes a
 * line for each answer. Fields stand between tabs. Texts are the hexadecimal digits of their UTF-16 code units; places
 * in texts count characters (code points), as in Python.
 */
public final class JavaClient {
    private JavaClient() {}

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        String command = arguments[0];
        if (command.equals("load")) {
            Arrays.stream(arguments).skip(1).forEach(path -> out.println(loaded(path)));
        } else if (command.equals("file")) {
            fileAnswers(arguments[1], out);
        } else if (command.equals("golden")) {
            goldenCheck(arguments[1], arguments[2], arguments[3].equals("outputs"), out);
        } else {
            AlbertTokenizer tokenizer = AlbertTokenizer.of(
                    new ByteArrayInputStream(Files.readAllBytes(Paths.get(arguments[1], "vocabulary.spm"))),
                    new ByteArrayInputStream(Files.readAllBytes(Paths.get(arguments[1], "tokenizer.json"))));
            if (command.equals("speed")) {
                speed(tokenizer, arguments[1], arguments[2], Integer.parseInt(arguments[3]), out);
            } else {
                answerLines(answerer(command, tokenizer), out);
            }
        }
        out.flush();
    }

    private static Function<String[], String> answerer(String command, AlbertTokenizer tokenizer) {
        switch (command) {
            case "tokenize":
                return fields -> pieces(text(fields[0]), tokenizer);
            case "encode":
                return fields -> row(
                        fields.length == 1
                                ? tokenizer.encode(text(fields[0]))
                                : tokenizer.encode(text(fields[0]), text(fields[1])));
            case "decode":
                return fields -> hexadecimal(tokenizer.decode(
                        Arrays.stream(fields[0].split(" ")).mapToInt(Integer::parseInt).toArray()));
            case "question":
                return fields -> answered(fields, tokenizer);
            case "tag":
                return fields -> tagged(fields, tokenizer);
            default:
                throw new IllegalArgumentException(command);
        }
    }

    /** Several threads share the tokenizer; the answers stay in order. */
    private static void answerLines(Function<String[], String> answer, PrintStream out) throws IOException {
        BufferedReader reader = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        List<String> lines = reader.lines().collect(Collectors.toList());
        lines.parallelStream().map(line -> {
            try {
                return answer.apply(line.split("\t", -1));
            } catch (InputException error) {
                return "InputException: " + error.getMessage();
            }
        }).collect(Collectors.toList()).forEach(out::println);
    }

    private static String text(String digits) {
        StringBuilder text = new StringBuilder(digits.length() / 4);
        for (int i = 0; i < digits.length(); i += 4) {
            text.append((char) Integer.parseInt(digits.substring(i, i + 4), 16));
        }
        return text.toString();
    }

    private static String hexadecimal(String text) {
        return text.chars().mapToObj(unit -> String.format("%04x", unit)).collect(Collectors.joining());
    }

    /** id:start:end of each piece. */
    private static String pieces(String text, AlbertTokenizer tokenizer) {
        Tokens tokens = tokenizer.tokenize(text);
        int[] places = characters(text);
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < tokens.ids.length; i++) {
            line.append(i == 0 ? "" : " ").append(tokens.ids[i]).append(':').append(places[tokens.starts[i]]);
            line.append(':').append(places[tokens.ends[i]]);
        }
        return line.toString();
    }

    /** For each char of a text, and its end, how many characters are before. */
    private static int[] characters(String text) {
        int[] places = new int[text.length() + 1];
        int count = 0;
        for (int i = 0; i < text.length(); ) {
            int size = Character.charCount(text.codePointAt(i));
            Arrays.fill(places, i, i + size, count++);
            i += size;
        }
        places[text.length()] = count;
        return places;
    }

    private static String row(InputRow row) {
        return numbers(row.tokenIds) + ";" + numbers(row.segmentIds) + ";" + numbers(row.paddingMask);
    }

    private static String numbers(int[] values) {
        return Arrays.stream(values).mapToObj(String::valueOf).collect(Collectors.joining(" "));
    }

    private static float[] floats(String values) {
        String[] parts = values.isEmpty() ? new String[0] : values.split(" ");
        float[] result = new float[parts.length];
        for (int i = 0; i < result.length; i++) {
            result[i] = Float.parseFloat(parts[i]);
        }
        return result;
    }

    private static float[][] table(String values, int columns) {
        float[] all = floats(values);
        float[][] result = new float[all.length / columns][];
        for (int i = 0; i < result.length; i++) {
            result[i] = Arrays.copyOfRange(all, i * columns, (i + 1) * columns);
        }
        return result;
    }

    /** Question, passage, settings as name=value, then the outputs of each row: starts;ends;no answer. */
    private static String answered(String[] fields, AlbertTokenizer tokenizer) {
        Map<String, Object> settings = new TreeMap<>();
        for (String setting : fields[2].split(",")) {
            String[] parts = setting.split("=");
            settings.put(parts[0], parts[0].equals("head") ? parts[1] : (Object) Double.valueOf(parts[1]));
        }
        AnswerSettings read = AnswerSettings.of(settings);
        QuestionAnswering answering = new QuestionAnswering(tokenizer, read);
        String passage = text(fields[1]);
        QuestionAnswering.Asked asked = answering.prepare(text(fields[0]), passage);
        List<QuestionAnswering.Outputs> outputs = new ArrayList<>();
        for (int i = 3; i < fields.length; i++) {
            String[] values = fields[i].split(";");
            outputs.add(read.squad2
                    ? QuestionAnswering.Outputs.squad2(
                            floats(values[0]), table(values[1], read.startBeams), Float.parseFloat(values[2]))
                    : QuestionAnswering.Outputs.span(floats(values[0]), floats(values[1])));
        }
        FoundAnswer found = answering.answer(asked, outputs);
        int[] places = characters(passage);
        StringBuilder line = new StringBuilder();
        line.append(found.start < 0 ? -1 : places[found.start]).append(' ');
        line.append(found.end < 0 ? -1 : places[found.end]).append(' ').append(found.score).append(' ');
        line.append(found.noAnswerScore).append('\t').append(hexadecimal(found.text));
        for (FoundAnswer.Span span : found.spans) {
            line.append('\t').append(places[span.start]).append(' ').append(places[span.end]);
            line.append(' ').append(span.score);
        }
        for (Window window : asked.windows) {
            line.append('\t').append(row(window.row));
        }
        return line.toString();
    }

    /** Text, labels, whether they are constrained, then the probabilities of each row. */
    private static String tagged(String[] fields, AlbertTokenizer tokenizer) {
        List<String> labels = Arrays.asList(fields[1].split(" "));
        Tagging tagging = new Tagging(tokenizer, labels, fields[2].equals("true"));
        String text = text(fields[0]);
        Tagging.Prepared prepared = tagging.prepare(text);
        List<float[][]> tables = new ArrayList<>();
        for (int i = 3; i < fields.length; i++) {
            tables.add(table(fields[i], labels.size()));
        }
        Tagging.Tagged answer = tagging.answer(prepared, tables);
        int[] places = characters(text);
        StringBuilder line = new StringBuilder(String.join(" ", answer.labels));
        for (Tagging.Entity entity : answer.entities) {
            line.append('\t').append(entity.kind).append(' ').append(places[entity.start]).append(' ');
            line.append(places[entity.end]).append(' ').append(entity.score).append(' ');
            line.append(hexadecimal(entity.text));
        }
        for (InputRow row : prepared.rows) {
            line.append('\t').append(row(row));
        }
        return line.toString();
    }

    /** What comes of a model file, or of a tokenizer's folder. */
    private static String loaded(String path) {
        try {
            byte[] settings = "{\"kind\": \"sentencepiece\", \"options\": {}, \"max_length\": 64}".getBytes(
                    StandardCharsets.UTF_8);
            boolean isFolder = Files.isDirectory(Paths.get(path));
            AlbertTokenizer tokenizer = isFolder
                    ? AlbertTokenizer.of(
                            Files.readAllBytes(Paths.get(path, "vocabulary.spm")),
                            Files.readAllBytes(Paths.get(path, "tokenizer.json")))
                    : AlbertTokenizer.of(Files.readAllBytes(Paths.get(path)), settings);
            tokenizer.encode("Caf\u00e9 \ufb01ve 9,000 \u200b\u3000 \uad6d", "\u3392 \uff21\u0301");
            return "loaded";
        } catch (Exception error) {
            return error.getClass().getSimpleName() + ": " + error.getMessage();
        }
    }

    /** A model's file: its settings; then for each text the signature and the row, and what its probabilities say. */
    private static void fileAnswers(String path, PrintStream out) throws IOException {
        ModelFile file;
        try {
            file = new ModelFile(ByteBuffer.wrap(Files.readAllBytes(Paths.get(path))));
            file.checkModel();
        } catch (InputException error) {
            out.println("InputException: " + error.getMessage());
            return;
        }
        out.println(file.task + "\t" + file.labels + "\t" + file.lengths + "\t" + file.tokenizer.maxLength);
        answerLines(fields -> {
            InputRow row = file.tokenizer.encode(text(fields[0]));
            Classification.Prediction best = Classification.predict(floats(fields[1]), file.labels, 3);
            String answer = best.label + " " + best.score + " " + best.depth;
            return file.signature(row.length) + "\t" + row(file.fitted(row)) + "\t" + answer;
        }, out);
    }

    /**
     * A model's file beside its golden answers: how many, then what differs. The outputs of each row stand in a line of
     * standard input, one after the other, each as it is padded; or there are none, and only the rest is compared.
     */
    private static void goldenCheck(String path, String golden, boolean hasOutputs, PrintStream out)
            throws IOException {
        BufferedReader reader = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        GoldenCheck.Runner runner = (row, signature, outputs) -> {
            try {
                String[] values = reader.readLine().split("\t", -1);
                int place = 0;
                for (float[] output : outputs.values()) {
                    float[] given = floats(values[place++]);
                    if (given.length != output.length) {
                        throw new IllegalStateException(signature + ": " + given.length + ", not " + output.length);
                    }
                    System.arraycopy(given, 0, output, 0, given.length);
                }
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        };
        try {
            ModelFile file = new ModelFile(ByteBuffer.wrap(Files.readAllBytes(Paths.get(path))));
            byte[] answers = Files.readAllBytes(Paths.get(golden));
            GoldenCheck check = new GoldenCheck(file, answers, hasOutputs ? runner : null);
            out.println(check.size());
            check.differences().forEach(out::println);
        } catch (InputException error) {
            out.println("InputException: " + error.getMessage());
        }
    }

    /**
     * What it takes to load a tokenizer, and all lines of a file: "first" of a new tokenizer, "known" of one that has seen
     * them. After each name the thread's processor time and the time that has passed, in seconds.
     */
    private static void speed(AlbertTokenizer tokenizer, String folder, String path, int turns, PrintStream out)
            throws IOException {
        List<String> lines = Files.readAllLines(Paths.get(path), StandardCharsets.UTF_8);
        byte[] vocabulary = Files.readAllBytes(Paths.get(folder, "vocabulary.spm"));
        byte[] settings = Files.readAllBytes(Paths.get(folder, "tokenizer.json"));
        for (int turn = 0; turn < turns; turn++) {
            AlbertTokenizer[] made = new AlbertTokenizer[1];
            measure("load", () -> made[0] = AlbertTokenizer.of(vocabulary, settings), out);
            measure("first", () -> tokenizeAll(made[0], lines), out);
            measure("known", () -> tokenizeAll(tokenizer, lines), out);
        }
    }

    private static void measure(String name, Runnable work, PrintStream out) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long started = System.nanoTime(), used = threads.getCurrentThreadCpuTime();
        work.run();
        double processor = (threads.getCurrentThreadCpuTime() - used) / 1e9;
        out.println(name + " " + processor + " " + (System.nanoTime() - started) / 1e9);
    }

    private static void tokenizeAll(AlbertTokenizer tokenizer, List<String> lines) {
        long tokens = 0;
        for (String line : lines) {
            tokens += tokenizer.tokenize(line).ids.length;
        }
        if (tokens == 0) {
            throw new IllegalStateException("no tokens");
        }
    }
}
