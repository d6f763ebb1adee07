'use strict'

const { performance } = require('node:perf_hooks')

const FIRST_BACKOFF = 10
const WAITED_BACKOFF = 100
const MAX_BACKOFF = 1000
const FINAL = new Set(['OVERFLOW', 'CLOSED'])
const DENIED = new Set(['UNAUTHENTICATED', 'FORBIDDEN'])
const REFUSED = new Set(['INVALID_ARGUMENT', 'BAD_KEY', 'STRICT_ORDER', 'PERIODIC', 'MASKED'])

/** What is wrong with the servers at present, as one tag sees it. */
class StoreHealth {
	error // undefined: nothing
	#since = 0
	#retryAt = 0
	#failures = 0

	/** Takes in a failed call; waited: callers wait for IDs. */
	failed(error, waited) {
		const now = performance.now()
		if (!this.error) {
			this.#since = now
		}
		this.error = error
		const bound = Math.min(waited ? WAITED_BACKOFF : MAX_BACKOFF, FIRST_BACKOFF * 2 ** Math.min(this.#failures++, 10))
		this.#retryAt = now + Math.random() * bound
	}

	succeeded() {
		this.error = undefined
		this.#failures = 0
	}

	/** Returns how long to wait before the next call. */
	pause() {
		return this.error ? Math.max(0, this.#retryAt - performance.now()) : 0
	}

	/** A failure that is older than a caller waits does not tell how long the servers have been failing. */
	resume(wait) {
		const now = performance.now()
		if (this.error && now - this.#retryAt > wait) {
			this.#since = now
		}
	}

	/** Returns why a caller should not even wait, or undefined; trying: a call was under way already. */
	verdict(wait, trying) {
		const now = performance.now()
		if (!this.error || !trying && now > this.#retryAt) {
			return undefined
		}
		return this.isVerdict() || now - this.#since >= wait ? this.error : undefined
	}

	/** Reports whether waiting does not help. */
	isVerdict() {
		return this.error !== undefined && (FINAL.has(this.error.reason) || REFUSED.has(this.error.reason) || this.error.reason === 'UNSUPPORTED')
	}
}

/** Reports whether callers without stock should see this reason rather than EXHAUSTED. */
const isTold = reason => FINAL.has(reason) || DENIED.has(reason) || REFUSED.has(reason)

module.exports = { StoreHealth, isTold }
