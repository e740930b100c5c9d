import com.hazelcast.config.Config;
import com.hazelcast.config.InMemoryFormat;
import com.hazelcast.config.JoinConfig;
import com.hazelcast.config.MapConfig;
import com.hazelcast.config.PartitioningAttributeConfig;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import com.hazelcast.nio.serialization.genericrecord.GenericRecord;
import com.hazelcast.nio.serialization.genericrecord.GenericRecordBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * One member: {@code HazelcastMember port,port,.. index [folder of the tables]}.
 *
 * <p>It prints a line when all members have joined and, if it has a folder, the tables are loaded; it ends with its
 * stdin. {@code orders} is partitioned by an attribute of its key, for SQL; {@code orders_by_id} by its whole key, for
 * access without SQL, because clients do not know a map's partitioning attributes (hazelcast/hazelcast#13950).
 */
final class HazelcastMember {
    private static final int ROWS_A_CALL = 10_000;

    private HazelcastMember() {}

    public static void main(String[] arguments) {
        try {
            run(arguments);
            System.exit(0);
        } catch (Exception failure) {
            // The threads of the member would keep the process.
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void run(String[] arguments) throws Exception {
        PrintStream replies = CallLoop.privateStdout();
        String[] ports = arguments[0].split(",");
        HazelcastInstance member = Hazelcast.newHazelcastInstance(config(ports, Integer.parseInt(arguments[1])));
        while (member.getCluster().getMembers().size() < ports.length) {
            Thread.sleep(50);
        }
        if (arguments.length > 2) {
            define(member);
            load(member, Path.of(arguments[2]));
        }
        replies.println("ready");
        while (System.in.read() >= 0) {
            // Nobody writes here; the end of the stream is the sign to stop.
        }
        Hazelcast.shutdownAll();
    }

    private static Config config(String[] ports, int index) {
        Config config = new Config().setClusterName("peers");
        config.setProperty("hazelcast.phone.home.enabled", "false");
        config.setProperty("hazelcast.partition.count", "271");
        config.setProperty("hazelcast.socket.bind.any", "false");
        config.getJetConfig().setEnabled(true);
        config.getNetworkConfig().setPort(Integer.parseInt(ports[index])).setPortAutoIncrement(false);
        config.getNetworkConfig().getInterfaces().setEnabled(true).addInterface("127.0.0.1");
        JoinConfig join = config.getNetworkConfig().getJoin();
        join.getAutoDetectionConfig().setEnabled(false);
        join.getMulticastConfig().setEnabled(false);
        join.getTcpIpConfig().setEnabled(true);
        for (String port : ports) {
            join.getTcpIpConfig().addMember("127.0.0.1:" + port);
        }
        config.addMapConfig(map("orders").setPartitioningAttributeConfigs(
                List.of(new PartitioningAttributeConfig("customer_id"))));
        config.addMapConfig(map("customers"));
        config.addMapConfig(map("product"));
        config.addMapConfig(map("orders_by_id"));
        return config;
    }

    private static MapConfig map(String name) {
        return new MapConfig(name).setBackupCount(1).setInMemoryFormat(InMemoryFormat.BINARY);
    }

    private static void define(HazelcastInstance member) {
        String value = "status VARCHAR, ordered_on DATE, quantity INTEGER, price DOUBLE";
        String compact = "'valueFormat' = 'compact', 'valueCompactTypeName' = ";
        for (String sql : List.of(
                "CREATE MAPPING orders (customer_id BIGINT EXTERNAL NAME \"__key.customer_id\", order_id BIGINT EXTERNAL"
                        + " NAME \"__key.order_id\", " + value + ") TYPE IMap OPTIONS ('keyFormat' = 'compact',"
                        + " 'keyCompactTypeName' = 'OrderKey', " + compact + "'Order')",
                "CREATE MAPPING orders_by_id (__key BIGINT, customer_id BIGINT, order_id BIGINT, " + value
                        + ") TYPE IMap OPTIONS ('keyFormat' = 'bigint', " + compact + "'WholeOrder')",
                "CREATE MAPPING customers (__key BIGINT, name VARCHAR) TYPE IMap OPTIONS ('keyFormat' = 'bigint', "
                        + compact + "'Customer')",
                "CREATE MAPPING product (__key INTEGER, title VARCHAR) TYPE IMap OPTIONS ('keyFormat' = 'int', "
                        + compact + "'Product')",
                "CREATE INDEX orders_of_customer ON orders (\"__key.customer_id\") TYPE HASH")) {
            member.getSql().execute(sql).close();
        }
    }

    private static void load(HazelcastInstance member, Path folder) throws IOException {
        load(member.getMap("orders"), folder.resolve("orders.csv"), HazelcastMember::key, HazelcastMember::order);
        load(member.getMap("orders_by_id"), folder.resolve("orders.csv"), row -> Long.valueOf(row[1]), row -> order(
                GenericRecordBuilder.compact("WholeOrder")
                        .setInt64("customer_id", Long.parseLong(row[0]))
                        .setInt64("order_id", Long.parseLong(row[1])),
                row));
        load(member.getMap("customers"), folder.resolve("customers.csv"), row -> Long.valueOf(row[0]), row ->
                GenericRecordBuilder.compact("Customer").setString("name", row[1]).build());
        load(member.getMap("product"), folder.resolve("product.csv"), row -> Integer.valueOf(row[0]), row ->
                GenericRecordBuilder.compact("Product").setString("title", row[1]).build());
    }

    private static <K> void load(
            IMap<K, GenericRecord> map, Path csv, Function<String[], K> key, Function<String[], GenericRecord> value)
            throws IOException {
        Map<K, GenericRecord> rows = new HashMap<>();
        try (BufferedReader lines = Files.newBufferedReader(csv)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] row = line.split(",");
                rows.put(key.apply(row), value.apply(row));
                if (rows.size() == ROWS_A_CALL) {
                    map.setAll(rows);
                    rows.clear();
                }
            }
        }
        map.setAll(rows);
    }

    /** SQL writes keys with nullable fields; the same values without are another key. */
    private static GenericRecord key(String[] row) {
        return GenericRecordBuilder.compact("OrderKey")
                .setNullableInt64("customer_id", Long.valueOf(row[0]))
                .setNullableInt64("order_id", Long.valueOf(row[1]))
                .build();
    }

    private static GenericRecord order(String[] row) {
        return order(GenericRecordBuilder.compact("Order"), row);
    }

    /** SQL writes numbers as nullable fields, so loaded ones are that as well: a schema of their own would be slower. */
    private static GenericRecord order(GenericRecordBuilder record, String[] row) {
        return record.setString("status", row[2])
                .setDate("ordered_on", LocalDate.parse(row[3]))
                .setNullableInt32("quantity", Integer.valueOf(row[4]))
                .setNullableFloat64("price", Double.valueOf(row[5]))
                .build();
    }
}
