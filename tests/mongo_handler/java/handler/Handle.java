package handler;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.ReplaceOneModel;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.WriteModel;
import com.mongodb.kafka.connect.sink.MongoSinkConfig;
import com.mongodb.kafka.connect.sink.cdc.qlik.rdbms.RdbmsHandler;
import com.mongodb.kafka.connect.sink.converter.SinkConverter;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.connect.sink.SinkRecord;
import org.bson.BsonDocument;
import org.bson.Document;
import org.bson.conversions.Bson;

/** Asks the connector's handler what it would write for each message: a line of JSON in, a line of JSON out. */
public final class Handle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Handle() {}

    /** Reads lines {"key": …, "value": …} until the end. */
    public static void main(String[] arguments) throws Exception {
        Map<String, String> chosen = new LinkedHashMap<>();
        chosen.put("topics", "t");
        chosen.put("connection.uri", "mongodb://127.0.0.1:1");
        chosen.put("database", "d");
        RdbmsHandler handler = new RdbmsHandler(new MongoSinkConfig(chosen).getMongoSinkTopicConfig("t"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<?, ?> message = JSON.readValue(line, Map.class);
            Map<String, Object> told = new LinkedHashMap<>();
            try {
                SinkRecord record =
                        new SinkRecord("t", 0, null, message.get("key"), null, message.get("value"), 0);
                tell(handler.handle(new SinkConverter().convert(record)), told);
            } catch (RuntimeException error) {
                told.put("error", error.toString());
            }
            System.out.println(JSON.writeValueAsString(told));
        }
    }

    private static void tell(Optional<WriteModel<BsonDocument>> found, Map<String, Object> told) {
        if (!found.isPresent()) {
            told.put("does", "nothing");
            return;
        }
        WriteModel<BsonDocument> model = found.get();
        told.put("does", model.getClass().getSimpleName());
        if (model instanceof ReplaceOneModel) {
            ReplaceOneModel<BsonDocument> replace = (ReplaceOneModel<BsonDocument>) model;
            told.put("filter", shown(replace.getFilter()));
            told.put("row", shown(replace.getReplacement()));
        } else if (model instanceof UpdateOneModel) {
            UpdateOneModel<BsonDocument> update = (UpdateOneModel<BsonDocument>) model;
            told.put("filter", shown(update.getFilter()));
            told.put("row", shown(update.getUpdate()));
        } else if (model instanceof DeleteOneModel) {
            told.put("filter", shown(((DeleteOneModel<BsonDocument>) model).getFilter()));
        }
    }

    private static Map<?, ?> shown(Bson document) {
        return Document.parse(document.toBsonDocument().toJson());
    }
}
