import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FileReader;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

/** Runs Debezium's embedded engine with the properties of a file, and prints each event: its topic, key and value, with tabs between. */
public class Capture {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (Reader reader = new FileReader(arguments[0], StandardCharsets.UTF_8)) {
            properties.load(reader);
        }
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
                .using(properties)
                .using((success, message, error) -> {
                    System.err.println(message);
                    System.exit(success ? 0 : 1);
                })
                .notifying(event -> out.println(event.destination() + "\t" + event.key() + "\t" + event.value()))
                .build();
        engine.run();
    }
}
