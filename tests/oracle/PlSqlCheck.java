// Says of each statement, a line of Base64, whether Debezium's PL/SQL grammar takes it: "ok", or place and complaint.

import io.debezium.antlr.CaseChangingCharStream;
import io.debezium.ddl.parser.oracle.generated.PlSqlLexer;
import io.debezium.ddl.parser.oracle.generated.PlSqlParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.antlr.v4.runtime.BaseErrorListener;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonTokenStream;
import org.antlr.v4.runtime.RecognitionException;
import org.antlr.v4.runtime.Recognizer;
import org.antlr.v4.runtime.atn.PredictionMode;
import org.antlr.v4.runtime.misc.ParseCancellationException;

final class PlSqlCheck extends BaseErrorListener {
    private String complaint = "ok";

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            var statement = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
            // The quick prediction refuses more than the grammar does, so only its refusals need the slow one.
            var quick = new PlSqlCheck().check(statement, PredictionMode.SLL);
            out.println(quick.equals("ok") ? quick : new PlSqlCheck().check(statement, PredictionMode.LL));
        }
    }

    private String check(String statement, PredictionMode mode) {
        var lexer = new PlSqlLexer(new CaseChangingCharStream(CharStreams.fromString(statement), true));
        var parser = new PlSqlParser(new CommonTokenStream(lexer));
        lexer.removeErrorListeners();
        lexer.addErrorListener(this);
        parser.removeErrorListeners();
        parser.addErrorListener(this);
        parser.getInterpreter().setPredictionMode(mode);
        try {
            parser.sql_script();
        } catch (ParseCancellationException ignored) {
            // The complaint says it. To go on behind it is the slow part of what a parser does.
        }
        return complaint;
    }

    @Override
    public void syntaxError(
            Recognizer<?, ?> reader, Object symbol, int line, int column, String said, RecognitionException error) {
        complaint = "line " + line + ", column " + (column + 1) + ": " + said.replaceAll("\\s+", " ");
        throw new ParseCancellationException(complaint); // the first complaint is the cause of the others
    }
}
