package client;

import com.informix.jdbc.IfxSqliConnect;
import java.sql.SQLException;

/** A connection of IBM's driver to no server: it says of itself what a server of our days says. */
class Unconnected extends IfxSqliConnect {
    Unconnected() throws SQLException {
    }

    /** As of version 9; without it INT8 is taken for INTEGER. */
    @Override
    public boolean isUSVER() {
        return true;
    }

    @Override
    public boolean isBigintSupported() {
        return true;
    }

    /** Without it the length of LVARCHAR is not understood, and the columns from there on are left out. */
    @Override
    public boolean isLvcGtThan2kSupported() {
        return true;
    }

    @Override
    public String getdbEncoding() {
        return System.getProperty("client.encoding", "UTF-8");
    }

    @Override
    public void close() {
        // There is nothing to close.
    }
}
