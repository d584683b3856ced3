package client;

import com.informix.jdbc.IfxProtocol;
import com.informix.stream.api.IfmxStreamOperationRecord;
import com.informix.stream.cdc.IfxCDCEngine;
import com.informix.stream.impl.IfxStreamException;
import com.informix.stream.transactions.IfmxStreamTransactionRecord;
import com.informix.stream.transactions.IfmxTransactionEngine;
import java.io.DataInputStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.sql.CallableStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

/**
 * A whole session of IBM's client: tells each call that it makes, answers its reads with what stands in the input, each
 * with its length before it, and tells the transactions that the client puts together. Its arguments are tables with
 * their columns, as db:owner.table=c1,c2.
 */
final class Session extends Unconnected {
    private static final int SESSION = 101;
    private static final DataInputStream READS = new DataInputStream(System.in);

    private Session() throws SQLException {
    }

    public static void main(String[] arguments) throws Exception {
        DataSource source = as(DataSource.class, (proxy, method, given) -> new Session());
        IfxCDCEngine.Builder builder = IfxCDCEngine.builder(source);
        for (String argument : arguments) {
            String[] parts = argument.split("=");
            builder.watchTable(parts[0], parts[1].split(","));
        }
        IfmxTransactionEngine engine = new IfmxTransactionEngine(builder.build());
        engine.init();
        try {
            while (true) {
                tell(engine.getTransaction());
            }
        } catch (IfxStreamException nothingMore) {
            tell("end", nothingMore.getMessage());
        }
        engine.close();
    }

    private static void tell(IfmxStreamTransactionRecord transaction) throws Exception {
        List<Object> records = new ArrayList<>();
        for (IfmxStreamOperationRecord record : transaction.getOperationRecords()) {
            records.add(Told.record(record));
        }
        tell("commit", List.of(Told.record(transaction.getEndRecord()), records));
    }

    private static void tell(String what, Object value) {
        System.out.println(Told.json(Map.of(what, value)));
    }

    @Override
    public CallableStatement prepareCall(String text) {
        List<Object> call = new ArrayList<>(List.of(text));
        return as(CallableStatement.class, (proxy, method, given) -> {
            if (method.getName().startsWith("set")) {
                call.add(List.of(method.getName(), given[1]));
            } else if (method.getName().equals("executeQuery")) {
                tell("call", call);
                return answer(text.contains("cdc_opensess") ? SESSION : 0);
            }
            return null;
        });
    }

    @Override
    public Statement createStatement() {
        return as(Statement.class, (proxy, method, given) -> {
            if (method.getName().equals("executeQuery")) {
                tell("call", List.of(given[0]));
                return answer(0);
            }
            return null;
        });
    }

    private static ResultSet answer(int number) {
        return as(ResultSet.class, (proxy, method, given) -> switch (method.getName()) {
            case "next" -> true;
            case "getInt" -> number;
            case "getString" -> "emulated ";
            default -> null;
        });
    }

    /** The driver's own class for large objects reads with it; what an earlier read left stays in the buffer. */
    @Override
    public IfxProtocol createProto() {
        return as(IfxProtocol.class, (proxy, method, given) -> {
            if (!method.getName().equals("executeReadSmBlob") || READS.available() == 0) {
                return -1;
            }
            int count = READS.readInt();
            return READS.readNBytes((byte[]) given[1], 0, count);
        });
    }

    private static <T> T as(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(Session.class.getClassLoader(), new Class<?>[] {type}, handler));
    }
}
