package io.github.leafid;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Takes IDs from Leaf servers at the speed of memory. It keeps a stock of each tag in the program, and
 * fetches the next range before the last one is missed.
 *
 * <pre>{@code
 * LeafClient ids = LeafClient.builder("http://leaf-1:8080,leaf-2:8080").build();
 * long id = ids.next("order");
 * ids.close();
 * }</pre>
 *
 * <p>What always holds:
 * <ol>
 * <li>No ID is issued twice, by this program or any other. A call whose answer is lost costs IDs.
 * <li>{@link #next(String)} makes no call while there is stock. The stock has as many IDs as the
 *     program took in the last outage budget, at least a step of the tag, as far as the loss budget
 *     allows.
 * <li>A crash loses at most the stock; {@link #close()} gives back what no other program has taken IDs
 *     behind.
 * <li>The IDs of one tag increase within a range. From range to range, and between programs, they
 *     interleave.
 * </ol>
 *
 * <p>Its methods may be called by several threads.
 */
public final class LeafClient implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(LeafClient.class.getName());
    private static final long UNKNOWN_FOR_MS = 1000; // how long an unknown tag is refused without another call

    private final Servers servers;
    private final ServerSource source;
    private final StockOptions options;
    private final ExecutorService threads = Servers.daemons("leaf-refill");
    private final ScheduledExecutorService timer;
    private final Map<String, Stock> stocks = new ConcurrentHashMap<>();
    private volatile boolean closed;

    private LeafClient(Builder b) {
        b.check();
        servers = new Servers(b);
        source = new ServerSource(servers);
        options = new StockOptions(b);
        timer = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread t = new Thread(task, "leaf-timer");
            t.setDaemon(true);
            return t;
        });
    }

    /**
     * Begins a client of the servers of a URL. They have one store. The client connects at the first
     * request for an ID.
     *
     * @param servers a URL such as http://h1:8080,h2:8080 or https://TOKEN@h1:8443
     * @return a builder
     */
    public static Builder builder(String servers) {
        return new Builder(servers);
    }

    /**
     * Returns the next ID of a tag.
     *
     * @param tag the tag
     * @return the ID
     * @throws LeafException EXHAUSTED, UNKNOWN_TAG, OVERFLOW, CLOSED, UNAUTHENTICATED, FORBIDDEN and others
     */
    public long next(String tag) {
        return stock(tag).next();
    }

    /**
     * Takes n IDs of a tag as few ranges.
     *
     * @param tag the tag
     * @param n how many, at most the loss budget
     * @return the ranges, in the order of issue
     * @throws LeafException as {@link #next(String)}
     */
    public List<IdRange> take(String tag, int n) {
        return stock(tag).take(n);
    }

    /**
     * Returns the generator of a tag.
     *
     * @param tag the tag
     * @return a generator, which works as long as this client
     */
    public IdGenerator tag(String tag) {
        return new IdGenerator() {
            @Override
            public long next() {
                return stock(tag).next();
            }

            @Override
            public long[] next(int n) {
                return stock(tag).next(n);
            }
        };
    }

    /**
     * Returns a generator that makes a call for each ID and keeps no stock, for IDs that increase over
     * all programs, as those of one server do. A call that repeats after a slow or lost answer may bring
     * IDs of another server.
     *
     * @param scheme segment, snowflake, uid or ticket
     * @param key the tag, or the name of a layout of the servers
     * @return a generator, which works as long as this client
     */
    public IdGenerator ordered(String scheme, String key) {
        return new Ordered(servers, source, scheme, key);
    }

    /**
     * Makes one call for numbers of a tag, and keeps no stock: for tags whose numbers start again with
     * each period. A lost answer costs numbers.
     *
     * @param tag the tag
     * @param period the first day of a period, such as 2026-11-23; empty: the present one
     * @param n how many
     * @return the numbers and their period
     * @throws LeafException INVALID_ARGUMENT for a day on which no period begins, UNKNOWN_TAG and others
     */
    public Issued issue(String tag, String period, int n) {
        return new Ordered(servers, source, "segment", tag).issue(period, false, n, false);
    }

    /**
     * Is {@link #issue} with the texts that the tag's form makes of the numbers.
     *
     * @param tag the tag, which has a form
     * @param period the first day of a period; empty: the present one, or the tag has none
     * @param n how many
     * @return the texts and the period of the numbers
     * @throws LeafException INVALID_ARGUMENT for a tag without a form, and others
     */
    public Issued issueTexts(String tag, String period, int n) {
        return new Ordered(servers, source, "segment", tag).issue(period, true, n, false);
    }

    /**
     * Describes each tag in use.
     *
     * @return figures by tag, sorted by name
     */
    public List<TagStats> stats() {
        List<TagStats> all = new ArrayList<>();
        for (Stock stock : stocks.values()) {
            all.add(stock.stats());
        }
        all.sort(Comparator.comparing(TagStats::tag));
        return all;
    }

    private Stock stock(String tag) {
        Stock stock = stocks.get(tag);
        if (stock != null) {
            return stock;
        }
        if (closed) {
            throw new LeafException(LeafException.CLOSED, "the client is closed");
        }
        stock = stocks.computeIfAbsent(tag, name -> new Stock(name, options, source, threads, () -> forgetSoon(name)));
        if (closed) {
            stock.close(); // close may not have seen it
        }
        return stock;
    }

    private void forgetSoon(String tag) {
        Stock stock = stocks.get(tag);
        if (stock != null && !closed) {
            timer.schedule(() -> stocks.remove(tag, stock), UNKNOWN_FOR_MS, TimeUnit.MILLISECONDS);
        }
    }

    /**
     * Gives unused IDs back, as far as no other program has taken IDs since, and ends the connections.
     * Later calls fail. It takes at most about two call time-outs.
     */
    @Override
    public void close() {
        synchronized (timer) {
            if (closed) {
                return;
            }
            closed = true;
        }
        Map<Stock, Future<?>> closing = new LinkedHashMap<>();
        for (Stock stock : stocks.values()) {
            closing.put(stock, threads.submit(() -> closeOne(stock)));
        }
        for (Future<?> f : closing.values()) {
            try {
                f.get(2 * options.callTimeout, TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                break;
            } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException e) {
                LOG.log(Level.FINE, "close a tag", e);
            }
        }
        timer.shutdownNow();
        threads.shutdownNow();
        servers.close();
    }

    private static void closeOne(Stock stock) {
        try {
            stock.close();
        } catch (LeafException e) { // normal if others have taken IDs since; these IDs are lost
            LOG.log(Level.FINE, "unused IDs were not taken back", e);
        }
    }

    /** The options of a {@link LeafClient}. */
    public static final class Builder extends ServersBuilder<Builder> {
        private static final long MAX_MAX_STOCK = 1L << 40;

        Duration outageBudget = Duration.ofMinutes(10);
        long maxStock = 10_000_000;
        Duration wait = Duration.ofSeconds(1);

        Builder(String url) {
            super(url);
        }

        @Override
        Builder self() {
            return this;
        }

        /**
         * Sets the time whose use the stock of a tag covers; default 10 minutes. In steady use, callers do
         * not notice that the servers are gone for this long.
         *
         * @param budget the time
         * @return this builder
         */
        public Builder outageBudget(Duration budget) {
            this.outageBudget = budget;
            return this;
        }

        /**
         * Sets the loss budget: the most IDs of a tag in memory, so the most that a crash may cost;
         * default 10,000,000. It wins over the outage budget. Only the first range of a tag may exceed it.
         *
         * @param ids the number of IDs
         * @return this builder
         */
        public Builder maxStock(long ids) {
            this.maxStock = ids;
            return this;
        }

        /**
         * Sets how long a call waits for a server when the stock is used up; default 1 s.
         *
         * @param wait the time
         * @return this builder
         */
        public Builder wait(Duration wait) {
            this.wait = wait;
            return this;
        }

        /**
         * Makes the client. It connects at the first request for an ID.
         *
         * @return the client
         * @throws LeafException INVALID_ARGUMENT if an option cannot be meant
         */
        public LeafClient build() {
            return new LeafClient(this);
        }

        @Override
        void check() {
            super.check();
            positive("outageBudget", outageBudget);
            positive("wait", wait);
            if (maxStock < 1 || maxStock > MAX_MAX_STOCK) {
                throw LeafException.invalid("maxStock is not in 1 … " + MAX_MAX_STOCK);
            }
        }
    }
}
