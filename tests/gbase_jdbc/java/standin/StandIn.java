package standin;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.logging.Logger;

/** Takes URLs as the vendors' drivers have them to a database H2 in memory, which calls functions with another word. */
public final class StandIn implements Driver {
    private static final String URL = "jdbc:(informix|gbasedbt)-sqli:.*";

    static {
        try {
            DriverManager.registerDriver(new StandIn());
        } catch (SQLException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    @Override
    public boolean acceptsURL(String url) {
        return url.matches(URL);
    }

    @Override
    public Connection connect(String url, Properties properties) throws SQLException {
        if (!acceptsURL(url)) {
            return null;
        }
        Connection inner = DriverManager.getConnection("jdbc:h2:mem:syscdcv1;DB_CLOSE_DELAY=-1");
        try (Statement statement = inner.createStatement()) {
            for (String definition : Server.DEFINITIONS) {
                statement.execute(definition);
            }
        }
        return (Connection) Proxy.newProxyInstance(StandIn.class.getClassLoader(), new Class<?>[] {Connection.class},
            (proxy, method, arguments) -> {
                if (method.getName().equals("prepareStatement")) {
                    arguments[0] = ((String) arguments[0]).replaceFirst("^EXECUTE FUNCTION ", "CALL ");
                }
                try {
                    return method.invoke(inner, arguments);
                } catch (InvocationTargetException error) {
                    throw error.getCause();
                }
            });
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
