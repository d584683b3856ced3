package standin;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

/** What the functions of the database syscdcv1 do here: they note that they were called, and a file is the stream. */
public final class Server {
    static final List<String> DEFINITIONS = List.of(
        "CREATE SCHEMA IF NOT EXISTS informix",
        "CREATE TABLE IF NOT EXISTS syscdctabs (dbname VARCHAR, owner VARCHAR, tabname VARCHAR, sessid INTEGER)",
        alias("opensess"), alias("set_fullrowlogging"), alias("startcapture"), alias("activatesess"),
        alias("deactivatesess"), alias("endcapture"), alias("closesess"));
    private static final Path FOLDER = Path.of(System.getenv("STANDIN_FOLDER"));
    private static final int SESSION = 7;
    private static final int NO_TABLE = -83705;
    private static int at;

    private Server() {
    }

    private static String alias(String name) {
        return "CREATE ALIAS IF NOT EXISTS informix.cdc_" + name + " FOR \"standin.Server." + name + "\"";
    }

    public static int opensess(String server, int session, int timeout, int most, int major, int minor) {
        at = 0;
        return said(SESSION, "opensess", server, session, timeout, most, major, minor);
    }

    public static int set_fullrowlogging(String table, int on) {
        return said(table.endsWith(".gone") ? NO_TABLE : 0, "set_fullrowlogging", table, on);
    }

    public static int startcapture(int session, long zero, String table, String columns, int label) {
        return said(0, "startcapture", session, zero, table, columns, label);
    }

    public static int activatesess(int session, long position) {
        return said(0, "activatesess", session, position);
    }

    public static int deactivatesess(int session) {
        return said(0, "deactivatesess", session);
    }

    public static int endcapture(int session, long zero, String table) {
        return said(0, "endcapture", session, zero, table);
    }

    public static int closesess(int session) {
        return said(0, "closesess", session);
    }

    /** As the vendor's method: at most so many bytes, how many they are, and beyond them what lay in the buffer. */
    public static synchronized int read(int session, byte[] buffer, int most) {
        byte[] stream = content("stream");
        byte[] given = at < stream.length ? stream : content("heartbeat");
        int start = at < stream.length ? at : 0;
        int count = Math.min(Math.min(1000, most), given.length - start);
        System.arraycopy(given, start, buffer, 0, count);
        at += at < stream.length ? count : 0;
        return session == SESSION ? count : -1;
    }

    private static byte[] content(String name) {
        try {
            return Files.readAllBytes(FOLDER.resolve(name));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static int said(int answer, Object... call) {
        String line = String.join(" ", java.util.Arrays.stream(call).map(String::valueOf).toList()) + "\n";
        try {
            Files.writeString(FOLDER.resolve("calls"), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return answer;
    }
}
