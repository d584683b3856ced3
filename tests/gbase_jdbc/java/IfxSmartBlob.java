package PACKAGE;

import java.sql.Connection;

/** Has the one method of the vendor's class that reads a session. */
public final class IfxSmartBlob {
    public IfxSmartBlob(Connection connection) {
    }

    public int IfxLoRead(int session, byte[] buffer, int most) {
        return standin.Server.read(session, buffer, most);
    }
}
