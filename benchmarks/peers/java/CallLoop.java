import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Clients of a peer in one process: threads that call in a closed or an open loop, as the harness asks over stdin.
 *
 * <p>It speaks the same lines of JSON as {@code caller.py} and times calls as {@code pacing.py} does: an open loop counts
 * a call from when it was due.
 */
final class CallLoop {
    /** From the bound values of a statement to all rows of its answer. */
    interface Call {
        List<List<Object>> rows(Object[] values) throws Exception;
    }

    /** A client of a peer. */
    interface Caller extends AutoCloseable {
        /** Connect, for so many threads. */
        void connect(Map<String, Object> service, int threads) throws Exception;

        /** What one thread calls for this statement; {@link Cannot} if there is no such statement. */
        Call call(String statement, int thread) throws Exception;

        /** The values as the peer wants them, made before anything is timed. */
        Object[] bound(String statement, List<Object> values);
    }

    /** The peer has no such statement. */
    static final class Cannot extends Exception {
        Cannot(String why) {
            super(why);
        }
    }

    private static final double LATE_FACTOR = 2.0;
    private static final double COUNTER_BEGAN_S = System.currentTimeMillis() / 1e3 - System.nanoTime() / 1e9;

    private CallLoop() {}

    static void serve(Caller caller) throws Exception {
        PrintStream replies = privateStdout();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            replies.println(Json.write(answered(caller, map(Json.read(line)))));
        }
        caller.close();
        System.exit(0);
    }

    /** The stream for replies; whatever libraries print to stdout goes to stderr from now on. */
    static PrintStream privateStdout() {
        PrintStream ours = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        return ours;
    }

    private static Map<String, Object> answered(Caller caller, Map<String, Object> request) {
        try {
            if (request.get("do").equals("connect")) {
                caller.connect(request, integer(request.get("threads")));
                return Map.of();
            }
            String statement = (String) request.get("statement");
            List<Object[]> values = new ArrayList<>();
            for (Object one : (List<?>) request.get("values")) {
                values.add(caller.bound(statement, list(one)));
            }
            if (request.get("do").equals("answer")) {
                Call call = caller.call(statement, 0);
                List<Object> rows = new ArrayList<>();
                for (Object[] one : values) {
                    rows.add(call.rows(one));
                }
                return Map.of("rows", rows);
            }
            return timed(caller, statement, values, request);
        } catch (Cannot why) {
            return Map.of("cannot", why.getMessage());
        } catch (Exception error) {
            error.printStackTrace();
            return Map.of("failed", String.valueOf(error));
        }
    }

    private static Map<String, Object> timed(
            Caller caller, String statement, List<Object[]> values, Map<String, Object> request) throws Exception {
        int threads = integer(request.get("threads"));
        double beganS = processorS();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<Timed>> loops = new ArrayList<>();
        try {
            for (int thread = 0; thread < threads; thread++) {
                Call call = caller.call(statement, thread);
                int first = thread * values.size() / threads;
                Random numbers = new Random(1_000L * integer(request.get("seed")) + thread);
                Callable<Timed> loop = request.get("do").equals("closed")
                        ? () -> closed(call, values, first, request)
                        : () -> open(call, values, first, number(request.get("rate_per_s")), numbers, request);
                loops.add(pool.submit(loop));
            }
            List<Object> latencies = new ArrayList<>();
            double elapsedS = 0;
            for (Future<Timed> loop : loops) {
                Timed found = loop.get();
                latencies.addAll(found.latenciesUs);
                elapsedS = Math.max(elapsedS, found.elapsedS);
            }
            Map<String, Object> reply = new LinkedHashMap<>();
            reply.put("elapsed_s", elapsedS);
            reply.put("processor_s", processorS() - beganS);
            reply.put("latencies_us", latencies);
            return reply;
        } finally {
            pool.shutdownNow();
        }
    }

    private record Timed(double elapsedS, List<Double> latenciesUs) {}

    private static Timed closed(Call call, List<Object[]> values, int first, Map<String, Object> request)
            throws Exception {
        List<Double> latencies = new ArrayList<>();
        double beginS = number(request.get("begin_s"));
        waitUntil(beginS);
        double endS = beginS + number(request.get("seconds"));
        double nowS = nowS();
        for (int turn = first; latencies.isEmpty() || nowS < endS; turn++) {
            call.rows(values.get(turn % values.size()));
            double lastS = nowS;
            nowS = nowS();
            latencies.add((nowS - lastS) * 1e6);
        }
        return new Timed(nowS - beginS, latencies);
    }

    private static Timed open(
            Call call, List<Object[]> values, int first, double ratePerS, Random numbers, Map<String, Object> request)
            throws Exception {
        List<Double> latencies = new ArrayList<>();
        double beginS = number(request.get("begin_s"));
        double seconds = number(request.get("seconds"));
        double dueS = gap(ratePerS, numbers);
        waitUntil(beginS);
        for (int turn = first; dueS < seconds && nowS() - beginS <= LATE_FACTOR * seconds; turn++) {
            waitUntil(beginS + dueS);
            call.rows(values.get(turn % values.size()));
            latencies.add((nowS() - beginS - dueS) * 1e6);
            dueS += gap(ratePerS, numbers);
        }
        double elapsedS = nowS() - beginS;
        for (; dueS < seconds; dueS += gap(ratePerS, numbers)) {
            latencies.add((elapsedS - dueS) * 1e6); // was due, and has waited until now
        }
        return new Timed(elapsedS, latencies);
    }

    private static double gap(double ratePerS, Random numbers) {
        return -Math.log(1 - numbers.nextDouble()) / ratePerS;
    }

    private static void waitUntil(double whenS) throws InterruptedException {
        for (double leftS = whenS - nowS(); leftS > 0; leftS = whenS - nowS()) {
            long nanos = (long) (leftS * 1e9);
            Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
        }
    }

    private static double nowS() {
        return COUNTER_BEGAN_S + System.nanoTime() / 1e9;
    }

    private static double processorS() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                        .getProcessCpuTime()
                / 1e9;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return (List<Object>) value;
    }

    static int integer(Object value) {
        return ((Number) value).intValue();
    }

    static double number(Object value) {
        return ((Number) value).doubleValue();
    }
}
