package client;

import com.informix.stream.cdc.IfxCDCRecordBuilder;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Map;

/** Takes records, each with its length before it, and answers each with what IBM's client reads in it; none begins anew. */
final class Reader {
    private Reader() {
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream input = new DataInputStream(System.in);
        IfxCDCRecordBuilder builder = new IfxCDCRecordBuilder(new Unconnected());
        for (int length = next(input); length >= 0; length = next(input)) {
            if (length == 0) {
                builder = new IfxCDCRecordBuilder(new Unconnected());
            } else {
                System.out.println(Told.json(told(builder, input.readNBytes(length))));
                System.out.flush();
            }
        }
    }

    static int next(DataInputStream input) throws IOException {
        byte[] length = input.readNBytes(4);
        return length.length < 4 ? -1 : java.nio.ByteBuffer.wrap(length).getInt();
    }

    private static Map<String, Object> told(IfxCDCRecordBuilder builder, byte[] bytes) {
        try {
            return Told.record(builder.buildRecord(bytes));
        } catch (Exception error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            return Map.of("failed", String.valueOf(cause.getMessage()));
        }
    }
}
