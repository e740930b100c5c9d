import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, strings, longs, doubles, booleans and null: what the harness sends, on one line. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Read one value. */
    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.skipSpace();
        if (json.at != text.length()) {
            throw new IllegalArgumentException("there is more than one value in " + text);
        }
        return value;
    }

    /** Write one value; what JSON has no type for is written as its text. */
    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Map<?, ?> map) {
            String comma = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(comma);
                write(String.valueOf(entry.getKey()), out);
                out.append(':');
                write(entry.getValue(), out);
                comma = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> values) {
            String comma = "";
            out.append('[');
            for (Object one : values) {
                out.append(comma);
                write(one, out);
                comma = ",";
            }
            out.append(']');
        } else {
            quote(value.toString(), out);
        }
    }

    private static void quote(String text, StringBuilder out) {
        out.append('"');
        for (char one : text.toCharArray()) {
            if (one == '"' || one == '\\') {
                out.append('\\').append(one);
            } else if (one < ' ') {
                out.append(String.format("\\u%04x", (int) one));
            } else {
                out.append(one);
            }
        }
        out.append('"');
    }

    private Object value() {
        skipSpace();
        char first = text.charAt(at);
        return switch (first) {
            case '{' -> object();
            case '[' -> array();
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        while (!ends('}')) {
            skipSpace();
            String name = string();
            skipSpace();
            at++;
            found.put(name, value());
        }
        return found;
    }

    private List<Object> array() {
        List<Object> found = new ArrayList<>();
        at++;
        while (!ends(']')) {
            found.add(value());
        }
        return found;
    }

    private boolean ends(char end) {
        skipSpace();
        if (text.charAt(at) == ',') {
            at++;
            return false;
        }
        if (text.charAt(at) == end) {
            at++;
            return true;
        }
        return false;
    }

    private String string() {
        StringBuilder found = new StringBuilder();
        at++;
        while (text.charAt(at) != '"') {
            char one = text.charAt(at++);
            if (one != '\\') {
                found.append(one);
                continue;
            }
            char escaped = text.charAt(at++);
            switch (escaped) {
                case 'n' -> found.append('\n');
                case 't' -> found.append('\t');
                case 'r' -> found.append('\r');
                case 'b' -> found.append('\b');
                case 'f' -> found.append('\f');
                case 'u' -> {
                    found.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                }
                default -> found.append(escaped);
            }
        }
        at++;
        return found.toString();
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw new IllegalArgumentException("no value at " + at + " of " + text);
        }
        at += word.length();
        return value;
    }

    private Object number() {
        int begin = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String found = text.substring(begin, at);
        if (found.chars().allMatch(one -> one == '-' || Character.isDigit(one))) {
            return Long.valueOf(found);
        }
        return Double.valueOf(found);
    }

    private void skipSpace() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }
}
