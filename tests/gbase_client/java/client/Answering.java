package client;

import com.informix.jdbc.IfxProtocol;
import java.io.DataInputStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.sql.CallableStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * A connection that answers as a server would: it tells each call, and each read of the session, by the driver's own
 * class for large objects, gives the next piece of the input, which has its length before it.
 */
final class Answering extends Unconnected {
    private static final int SESSION = 101;
    private final DataInputStream reads;
    private final Consumer<List<Object>> calls;
    private byte[] last;

    /** With `endless` the last piece, a heartbeat, comes again and again; else there is an error when all were read. */
    Answering(DataInputStream reads, Consumer<List<Object>> calls, boolean endless) throws SQLException {
        this.reads = reads;
        this.calls = calls;
        this.last = endless ? new byte[0] : null;
    }

    @Override
    public CallableStatement prepareCall(String text) {
        List<Object> call = new ArrayList<>(List.of(text));
        return as(CallableStatement.class, (proxy, method, given) -> {
            if (method.getName().startsWith("set")) {
                call.add(List.of(method.getName(), given[1]));
            } else if (method.getName().equals("executeQuery")) {
                calls.accept(call);
                return answer(text.contains("cdc_opensess") ? SESSION : 0);
            }
            return null;
        });
    }

    @Override
    public Statement createStatement() {
        return as(Statement.class, (proxy, method, given) -> {
            if (method.getName().equals("executeQuery")) {
                calls.accept(List.of(given[0]));
                return answer(0);
            }
            return null;
        });
    }

    private static ResultSet answer(int number) {
        return as(ResultSet.class, (proxy, method, given) -> switch (method.getName()) {
            case "next" -> true;
            case "getInt" -> number;
            case "getLong" -> (long) number;
            case "getString" -> "emulated ";
            default -> null;
        });
    }

    /** What an earlier read left stays in the buffer behind the piece. */
    @Override
    public IfxProtocol createProto() {
        return as(IfxProtocol.class, (proxy, method, given) -> {
            byte[] piece = method.getName().equals("executeReadSmBlob") ? next() : null;
            if (piece == null) {
                return -1;
            }
            System.arraycopy(piece, 0, (byte[]) given[1], 0, piece.length);
            return piece.length;
        });
    }

    private byte[] next() throws Exception {
        if (reads.available() == 0) {
            return last;
        }
        byte[] piece = reads.readNBytes(reads.readInt());
        last = last == null ? null : piece;
        return piece;
    }

    static <T> T as(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(Answering.class.getClassLoader(), new Class<?>[] {type}, handler));
    }
}
