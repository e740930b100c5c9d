import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.ignite.Ignition;
import org.apache.ignite.binary.BinaryObject;
import org.apache.ignite.client.ClientCache;
import org.apache.ignite.client.IgniteClient;
import org.apache.ignite.configuration.ClientConfiguration;

/**
 * JDBC thin with partition awareness, a connection for each thread; and the thin client for access without SQL, which all
 * threads share.
 */
final class IgniteCaller implements CallLoop.Caller {
    private final List<Connection> connections = new ArrayList<>();
    private ClientCache<Long, BinaryObject> orders;
    private IgniteClient client;
    private Map<String, Object> texts;

    public static void main(String[] arguments) throws Exception {
        CallLoop.serve(new IgniteCaller());
    }

    @Override
    public void connect(Map<String, Object> service, int threads) throws SQLException {
        String[] addresses =
                CallLoop.list(service.get("addresses")).stream().map(String::valueOf).toArray(String[]::new);
        String url = "jdbc:ignite:thin://" + String.join(",", addresses) + "?partitionAwareness=true";
        for (int thread = 0; thread < threads; thread++) {
            connections.add(DriverManager.getConnection(url));
        }
        client = Ignition.startClient(
                new ClientConfiguration().setAddresses(addresses).setPartitionAwarenessEnabled(true));
        orders = client.<Long, BinaryObject>cache("orders_by_id").withKeepBinary();
        texts = CallLoop.map(service.get("texts"));
    }

    @Override
    public Object[] bound(String statement, List<Object> values) {
        return values.stream().map(IgniteCaller::typed).toArray();
    }

    private static Object typed(Object value) {
        return value instanceof String text && text.matches("\\d{4}-\\d{2}-\\d{2}") ? Timestamp.valueOf(text + " 00:00:00") : value;
    }

    @Override
    public CallLoop.Call call(String statement, int thread) throws CallLoop.Cannot, SQLException {
        if (statement.equals("get without SQL")) {
            return values -> got((Long) values[0], (Long) values[1]);
        }
        if (!(texts.get(statement) instanceof String sql)) {
            throw new CallLoop.Cannot("Ignite has no ON CONFLICT; MERGE is the line of INSERT OR REPLACE");
        }
        PreparedStatement prepared = connections.get(thread).prepareStatement(sql);
        return sql.startsWith("SELECT") ? values -> rows(prepared, values) : values -> write(prepared, values);
    }

    private static List<List<Object>> rows(PreparedStatement prepared, Object[] values) throws SQLException {
        List<List<Object>> rows = new ArrayList<>();
        bind(prepared, values);
        try (ResultSet result = prepared.executeQuery()) {
            int columns = result.getMetaData().getColumnCount();
            while (result.next()) {
                List<Object> row = new ArrayList<>(columns);
                for (int column = 1; column <= columns; column++) {
                    row.add(day(result.getObject(column)));
                }
                rows.add(row);
            }
        }
        return rows;
    }

    private static Object day(Object value) {
        return value instanceof Timestamp time ? time.toLocalDateTime().toLocalDate() : value;
    }

    private static List<List<Object>> write(PreparedStatement prepared, Object[] values) throws SQLException {
        bind(prepared, values);
        prepared.executeUpdate();
        return List.of();
    }

    private static void bind(PreparedStatement prepared, Object[] values) throws SQLException {
        for (int position = 0; position < values.length; position++) {
            prepared.setObject(position + 1, values[position]);
        }
    }

    private List<List<Object>> got(Long customer, Long order) {
        BinaryObject found = orders.get(order);
        if (found == null) {
            return List.of();
        }
        return List.of(List.of(
                found.field("CUSTOMER_ID"),
                order,
                found.field("STATUS"),
                day(found.field("ORDERED_ON")),
                found.field("QUANTITY"),
                found.field("PRICE")));
    }

    @Override
    public void close() throws SQLException {
        for (Connection connection : connections) {
            connection.close();
        }
        if (client != null) {
            client.close();
        }
    }
}
