import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import org.apache.ignite.Ignite;
import org.apache.ignite.Ignition;
import org.apache.ignite.configuration.ClientConnectorConfiguration;
import org.apache.ignite.configuration.DataRegionConfiguration;
import org.apache.ignite.configuration.DataStorageConfiguration;
import org.apache.ignite.configuration.IgniteConfiguration;
import org.apache.ignite.spi.communication.tcp.TcpCommunicationSpi;
import org.apache.ignite.spi.discovery.tcp.TcpDiscoverySpi;
import org.apache.ignite.spi.discovery.tcp.ipfinder.vm.TcpDiscoveryVmIpFinder;

/**
 * One node: {@code IgniteMember port,port,.. index work [folder of the tables]}, with three ports for each node: of
 * discovery, of communication and for clients.
 *
 * <p>Days are timestamps, because pyignite cannot read a DATE. It prints a line when all nodes have joined and, if it has a folder, the tables are loaded; it ends with its stdin.
 */
final class IgniteMember {
    private static final int ROWS_A_BATCH = 5_000;
    private static final long REGION_BYTES = 1L << 30;
    private static final String PARTITIONED =
            "template=partitioned,backups=1,atomicity=atomic,write_synchronization_mode=full_sync";

    private IgniteMember() {}

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
        int index = Integer.parseInt(arguments[1]);
        Ignite node = Ignition.start(config(ports, index, arguments[2]));
        while (node.cluster().nodes().size() < ports.length / 3) {
            Thread.sleep(50);
        }
        if (arguments.length > 3) {
            String url = "jdbc:ignite:thin://127.0.0.1:" + ports[3 * index + 2];
            try (Connection connection = DriverManager.getConnection(url)) {
                define(connection);
                load(connection, Path.of(arguments[3]));
            }
        }
        replies.println("ready");
        while (System.in.read() >= 0) {
            // Nobody writes here; the end of the stream is the sign to stop.
        }
        Ignition.stopAll(true);
    }

    private static IgniteConfiguration config(String[] ports, int index, String work) {
        List<String> addresses = new ArrayList<>();
        for (int node = 0; node < ports.length; node += 3) {
            addresses.add("127.0.0.1:" + ports[node]);
        }
        DataRegionConfiguration region = new DataRegionConfiguration().setName("peers").setMaxSize(REGION_BYTES);
        return new IgniteConfiguration()
                .setIgniteInstanceName("peers-" + index)
                .setConsistentId("peers-" + index)
                .setWorkDirectory(work)
                .setLocalHost("127.0.0.1")
                .setMetricsLogFrequency(0)
                .setDataStorageConfiguration(
                        new DataStorageConfiguration().setDefaultDataRegionConfiguration(region))
                .setDiscoverySpi(new TcpDiscoverySpi()
                        .setLocalPort(Integer.parseInt(ports[3 * index]))
                        .setLocalPortRange(0)
                        .setIpFinder(new TcpDiscoveryVmIpFinder().setAddresses(addresses)))
                .setCommunicationSpi(
                        new TcpCommunicationSpi().setLocalPort(Integer.parseInt(ports[3 * index + 1])))
                .setClientConnectorConfiguration(new ClientConnectorConfiguration()
                        .setHost("127.0.0.1")
                        .setPort(Integer.parseInt(ports[3 * index + 2]))
                        .setPortRange(0));
    }

    private static void define(Connection connection) throws SQLException {
        String columns = "status VARCHAR, ordered_on TIMESTAMP, quantity INT, price DOUBLE";
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE orders (customer_id BIGINT, order_id BIGINT, " + columns
                    + ", PRIMARY KEY (customer_id, order_id)) WITH \"" + PARTITIONED
                    + ",affinity_key=customer_id,cache_name=orders\"");
            statement.execute("CREATE TABLE orders_by_id (order_id BIGINT PRIMARY KEY, customer_id BIGINT, " + columns
                    + ") WITH \"" + PARTITIONED + ",cache_name=orders_by_id,value_type=WholeOrder\"");
            statement.execute("CREATE TABLE customers (customer_id BIGINT PRIMARY KEY, name VARCHAR) WITH \""
                    + PARTITIONED + ",cache_name=customers\"");
            statement.execute("CREATE TABLE product (product_id INT PRIMARY KEY, title VARCHAR) WITH"
                    + " \"template=replicated,cache_name=product\"");
        }
    }

    private static void load(Connection connection, Path folder) throws SQLException, IOException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SET STREAMING ON");
            String order = " (customer_id, order_id, status, ordered_on, quantity, price) VALUES (?, ?, ?, ?, ?, ?)";
            insert(connection, folder.resolve("orders.csv"), "INSERT INTO orders" + order);
            insert(connection, folder.resolve("orders.csv"), "INSERT INTO orders_by_id" + order);
            insert(connection, folder.resolve("customers.csv"), "INSERT INTO customers VALUES (?, ?)");
            insert(connection, folder.resolve("product.csv"), "INSERT INTO product VALUES (?, ?)");
            statement.execute("SET STREAMING OFF");
        }
    }

    private static void insert(Connection connection, Path csv, String sql) throws SQLException, IOException {
        try (BufferedReader lines = Files.newBufferedReader(csv);
                PreparedStatement insert = connection.prepareStatement(sql)) {
            int rows = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] row = line.split(",");
                insert.setLong(1, Long.parseLong(row[0]));
                if (row.length == 2) {
                    insert.setString(2, row[1]);
                } else {
                    insert.setLong(2, Long.parseLong(row[1]));
                    insert.setString(3, row[2]);
                    insert.setTimestamp(4, Timestamp.valueOf(row[3] + " 00:00:00"));
                    insert.setInt(5, Integer.parseInt(row[4]));
                    insert.setDouble(6, Double.parseDouble(row[5]));
                }
                insert.addBatch();
                if (++rows % ROWS_A_BATCH == 0) {
                    insert.executeBatch();
                }
            }
            insert.executeBatch();
        }
    }
}
