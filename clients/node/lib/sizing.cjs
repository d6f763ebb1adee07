'use strict'

/**
 * Returns the number of IDs to ask for now, or 0. When less than nine tenths of the recent use, at
 * least a step, are left, it fills the stock up to that. Callers who need more get more, but the
 * stock never exceeds all IDs issued so far plus two steps.
 */
function refillSize({ stock, missing, step, issued, recent, maxStock }) {
	const target = Math.min(Math.max(step, recent), maxStock)
	if (stock >= missing && stock * 10 >= target * 9 || stock > issued + step) {
		return 0
	}
	const wanted = Math.max(step, target - stock, missing - stock)
	const n = Math.min(wanted, Math.max(step, issued - stock))
	return Math.max(0, Math.min(n, maxStock - stock))
}

const SAMPLES = 20

/** Counts the IDs issued within the last outage budget; all samples but the first are within it. */
class RecentUse {
	#samples

	constructor(budget, now) {
		this.budget = budget
		this.#samples = [{ at: now, issued: 0 }]
	}

	/** Takes in how many IDs have been issued by now, and returns how many of them are recent. */
	observe(now, issued) {
		const samples = this.#samples
		if (now - samples[samples.length - 1].at >= this.budget / SAMPLES) {
			samples.push({ at: now, issued })
		}
		while (samples.length > 1 && samples[1].at <= now - this.budget) {
			samples.shift()
		}
		return issued - samples[0].issued
	}
}

module.exports = { RecentUse, refillSize }
