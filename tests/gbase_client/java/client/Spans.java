package client;

import com.informix.jdbc.IfxColumnInfo;
import com.informix.jdbc.IfxObject;
import com.informix.jdbc.IfxValue;
import com.informix.stream.cdc.IfxCDCRecordBuilder;
import com.informix.stream.cdc.records.IfxCDCMetaDataRecord;
import java.io.DataInputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;

/**
 * Takes tables of one INTERVAL column, each followed by one row, and answers with the value: IBM's client refuses such
 * columns, and the driver below it, which reads the same bytes in a query's rows, does not.
 */
final class Spans {
    private Spans() {
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream input = new DataInputStream(System.in);
        Unconnected connection = new Unconnected();
        for (int length = Reader.next(input); length >= 0; length = Reader.next(input)) {
            byte[] table = input.readNBytes(length);
            byte[] row = input.readNBytes(Reader.next(input));
            IfxCDCRecordBuilder builder = new IfxCDCRecordBuilder(connection);
            IfxCDCMetaDataRecord described = (IfxCDCMetaDataRecord) builder.buildRecord(table);
            IfxColumnInfo column = described.getColumns().get(0);
            IfxObject value = IfxValue.makeInstance(connection, column);
            byte[] bytes = Arrays.copyOfRange(row, ByteBuffer.wrap(row).getInt(), row.length);
            value.fromIfx(bytes, 0, bytes.length, (short) column.getColumnLength());
            System.out.println(Told.json(Collections.singletonMap("value", value.isNull() ? null : value.toString())));
            System.out.flush();
        }
    }
}
