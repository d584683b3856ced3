package client;

import com.informix.jdbc.IfmxReadableType;
import com.informix.jdbc.IfxColumnInfo;
import com.informix.jdbc.IfxDateTime;
import com.informix.jdbc.IfxLocator;
import com.informix.jdbc.IfxSmBlob;
import com.informix.stream.api.IfmxStreamRecord;
import com.informix.stream.cdc.records.IfxCDCBeginTransactionRecord;
import com.informix.stream.cdc.records.IfxCDCCommitTransactionRecord;
import com.informix.stream.cdc.records.IfxCDCErrorRecord;
import com.informix.stream.cdc.records.IfxCDCMetaDataRecord;
import com.informix.stream.cdc.records.IfxCDCOperationRecord;
import com.informix.stream.cdc.records.IfxCDCTruncateRecord;
import java.lang.reflect.Field;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** What IBM's client says of a record, as a line of JSON. */
final class Told {
    private Told() {
    }

    static Map<String, Object> record(IfmxStreamRecord record) throws Exception {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("type", record.getType().name());
        told.put("seq", record.getSequenceId());
        told.put("txid", record.getTransactionId());
        told.put("label", record.getLabel());
        if (record instanceof IfxCDCBeginTransactionRecord begin) {
            told.put("time", begin.getTime());
            told.put("user", begin.getUserId());
        } else if (record instanceof IfxCDCCommitTransactionRecord commit) {
            told.put("time", commit.getTime());
        } else if (record instanceof IfxCDCTruncateRecord truncate) {
            told.put("user", truncate.getUserId());
        } else if (record instanceof IfxCDCErrorRecord error) {
            told.put("flags", error.getFlags());
            told.put("code", error.getError());
        } else if (record instanceof IfxCDCMetaDataRecord table) {
            told.put("columns", table.getColumns().stream().map(IfxColumnInfo::getColumnName).toList());
        } else if (record instanceof IfxCDCOperationRecord row) {
            told.put("values", values(row));
        }
        return told;
    }

    private static Map<String, Object> values(IfxCDCOperationRecord row) throws Exception {
        Map<String, Object> told = new LinkedHashMap<>();
        for (Map.Entry<String, IfmxReadableType> column : row.getData().entrySet()) {
            told.put(column.getKey(), text(column.getValue()));
        }
        return told;
    }

    /** A value as text: of a DATETIME the driver has no better form, and a large object itself is on a server. */
    private static String text(IfmxReadableType value) throws Exception {
        if (value instanceof IfxSmBlob blob) {
            Field locator = IfxSmBlob.class.getDeclaredField("locator");
            locator.setAccessible(true);
            return HexFormat.of().formatHex(((IfxLocator) locator.get(blob)).toBytes());
        }
        if (value.isNull()) {
            return null;
        }
        return String.valueOf(value instanceof IfxDateTime ? value.toString() : value.toObject());
    }

    static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(entry -> json(entry.getKey()) + ":" + json(entry.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof List<?> list) {
            return list.stream().map(Told::json).collect(Collectors.joining(",", "[", "]"));
        }
        return value instanceof String text ? quoted(text) : String.valueOf(value);
    }

    private static String quoted(String text) {
        StringBuilder written = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            boolean plain = each >= ' ' && each < 127 && each != '"' && each != '\\';
            written.append(plain ? String.valueOf(each) : String.format("\\u%04x", (int) each));
        }
        return written.append('"').toString();
    }
}
