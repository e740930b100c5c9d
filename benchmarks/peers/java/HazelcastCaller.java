import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import com.hazelcast.nio.serialization.genericrecord.GenericRecord;
import com.hazelcast.sql.SqlResult;
import com.hazelcast.sql.SqlRow;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The Java client of Hazelcast: one client that all threads share, as its documents ask for. */
final class HazelcastCaller implements CallLoop.Caller {
    private HazelcastInstance client;
    private Map<String, Object> texts;

    public static void main(String[] arguments) throws Exception {
        CallLoop.serve(new HazelcastCaller());
    }

    @Override
    public void connect(Map<String, Object> service, int threads) {
        ClientConfig config = new ClientConfig().setClusterName("peers");
        for (Object address : CallLoop.list(service.get("addresses"))) {
            config.getNetworkConfig().addAddress((String) address);
        }
        client = HazelcastClient.newHazelcastClient(config);
        texts = CallLoop.map(service.get("texts"));
    }

    @Override
    public Object[] bound(String statement, List<Object> values) {
        return values.stream().map(HazelcastCaller::typed).toArray();
    }

    private static Object typed(Object value) {
        return value instanceof String text && text.matches("\\d{4}-\\d{2}-\\d{2}") ? LocalDate.parse(text) : value;
    }

    @Override
    public CallLoop.Call call(String statement, int thread) throws CallLoop.Cannot {
        if (statement.equals("get without SQL")) {
            IMap<Long, GenericRecord> orders = client.getMap("orders_by_id");
            return values -> row(orders.get((Long) values[1]));
        }
        if (!(texts.get(statement) instanceof String sql)) {
            throw new CallLoop.Cannot("Hazelcast has no ON CONFLICT; SINK INTO is the line of INSERT OR REPLACE");
        }
        return values -> rows(sql, values);
    }

    private List<List<Object>> rows(String sql, Object[] values) {
        List<List<Object>> rows = new ArrayList<>();
        try (SqlResult result = client.getSql().execute(sql, values)) {
            if (!result.isRowSet()) {
                return rows;
            }
            int columns = result.getRowMetadata().getColumnCount();
            for (SqlRow row : result) {
                List<Object> found = new ArrayList<>(columns);
                for (int column = 0; column < columns; column++) {
                    found.add(row.getObject(column));
                }
                rows.add(found);
            }
        }
        return rows;
    }

    private static List<List<Object>> row(GenericRecord found) {
        if (found == null) {
            return List.of();
        }
        return List.of(List.of(
                found.getInt64("customer_id"),
                found.getInt64("order_id"),
                found.getString("status"),
                found.getDate("ordered_on"),
                found.getNullableInt32("quantity"),
                found.getNullableFloat64("price")));
    }

    @Override
    public void close() {
        if (client != null) {
            client.shutdown();
        }
    }
}
