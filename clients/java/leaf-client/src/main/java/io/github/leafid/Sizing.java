package io.github.leafid;

/** How many IDs to ask for. */
final class Sizing {
    private Sizing() {}

    /**
     * Returns the number of IDs to ask for now, or 0. When less than nine tenths of the recent use, at
     * least a step, are left, it fills the stock up to that. Callers who need more get more, but the
     * stock never exceeds all IDs issued so far plus two steps.
     */
    static long size(long stock, long missing, long step, long issued, long recent, long maxStock) {
        long target = Math.min(Math.max(step, recent), maxStock);
        if (stock >= missing && stock * 10 >= target * 9 || stock > issued + step) {
            return 0;
        }
        long wanted = Math.max(step, Math.max(target - stock, missing - stock));
        long n = Math.min(wanted, Math.max(step, issued - stock));
        return Math.max(0, Math.min(n, maxStock - stock));
    }
}
