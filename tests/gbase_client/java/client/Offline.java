package client;

import com.informix.jdbc.IfxConnection;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.SQLException;
import java.util.Properties;
import java.util.logging.Logger;

/** Connects `jdbc:offline:folder` to the folder: the file `reads` is what the session delivers, `calls` what was asked. */
public final class Offline implements Driver {
    private static final String URL = "jdbc:offline:";

    static {
        try {
            DriverManager.registerDriver(new Offline());
        } catch (SQLException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    @Override
    public boolean acceptsURL(String url) {
        return url.startsWith(URL);
    }

    @Override
    public Connection connect(String url, Properties properties) throws SQLException {
        if (!acceptsURL(url)) {
            return null;
        }
        Path folder = Path.of(url.substring(URL.length()));
        try {
            DataInputStream reads = new DataInputStream(Files.newInputStream(folder.resolve("reads")));
            Answering inner = new Answering(reads, call -> note(folder.resolve("calls"), Told.json(call)), true);
            // The driver's class promises prepared statements of its own class; its interface does not.
            return Answering.as(IfxConnection.class, (proxy, method, given) -> {
                boolean prepared = method.getName().equals("prepareStatement");
                return prepared ? inner.prepareCall((String) given[0]) : method.invoke(inner, given);
            });
        } catch (IOException error) {
            throw new SQLException(error);
        }
    }

    private static void note(Path calls, String call) {
        try {
            Files.writeString(calls, call + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public DriverPropertyInfo[] getPropertyInfo(String url, Properties properties) {
        return new DriverPropertyInfo[0];
    }

    @Override
    public int getMajorVersion() {
        return 1;
    }

    @Override
    public int getMinorVersion() {
        return 0;
    }

    @Override
    public boolean jdbcCompliant() {
        return false;
    }

    @Override
    public Logger getParentLogger() {
        return Logger.getGlobal();
    }
}
