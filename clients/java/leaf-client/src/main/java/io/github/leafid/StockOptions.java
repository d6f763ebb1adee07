package io.github.leafid;

/** What all stocks of a client have in common; times in nanoseconds. */
final class StockOptions {
    final long outageBudget;
    final long maxStock;
    final long wait;
    final long callTimeout;

    StockOptions(LeafClient.Builder b) {
        outageBudget = b.outageBudget.toNanos();
        maxStock = b.maxStock;
        wait = b.wait.toNanos();
        callTimeout = b.callTimeout.toNanos();
    }
}
