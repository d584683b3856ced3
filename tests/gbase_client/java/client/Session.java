package client;

import com.informix.stream.api.IfmxStreamOperationRecord;
import com.informix.stream.cdc.IfxCDCEngine;
import com.informix.stream.impl.IfxStreamException;
import com.informix.stream.transactions.IfmxStreamTransactionRecord;
import com.informix.stream.transactions.IfmxTransactionEngine;
import java.io.DataInputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

/**
 * A whole session of IBM's client: tells each call that it makes, gives it to read what stands in the input, and tells
 * the transactions that it puts together. Its arguments are tables with their columns, as db:owner.table=c1,c2.
 */
final class Session {
    private Session() {
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream reads = new DataInputStream(System.in);
        DataSource source = Answering.as(
            DataSource.class, (proxy, method, given) -> new Answering(reads, call -> tell("call", call), false));
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
}
