'use strict'

const { performance } = require('node:perf_hooks')
const { LeafError, invalid } = require('./error.cjs')
const { StoreHealth, isTold } = require('./health.cjs')
const { RecentUse, refillSize } = require('./sizing.cjs')
const { patientTimer } = require('./timer.cjs')

/** A granted range with a cursor. */
class Span {
	constructor(grant) {
		this.grant = grant
		this.start = grant.start
		this.size = Number(grant.end - grant.start)
		this.used = 0
		this.small = grant.end <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(grant.start) : -1 // start, if numbers hold all IDs
		this.due = Math.max(0, Math.min(Math.floor(this.size / 10) + 1, this.size - 1)) // beyond it a caller looks at the stock
	}

	/** Says when to look next. */
	defer() {
		const next = this.used + Math.max(1, Math.min(Math.floor(this.size / 10), Math.floor((this.size - this.used) / 2)))
		this.due = Math.min(this.size, next)
	}
}

const NO_SPAN = { start: 0n, end: 0n }

/**
 * The IDs of one tag in memory. It fetches the next range before the last one is missed.
 *
 * It holds as many IDs as the last outage budget used, at least a step of the tag. It is granted at
 * most twice the IDs that it issues, plus two steps, and what lost answers cost.
 */
class Stock {
	granted = 0
	returned = 0
	failures = 0
	#current = new Span(NO_SPAN)
	#queue = [] // what follows current
	#retired = 0 // IDs issued from earlier spans
	#waiters = [] // callers that the stock did not serve at once, in their order
	#health = new StoreHealth()
	#refilling // a promise while the servers are being called
	#wake // ends the pause of the refill
	#closing
	#end // why no ID will ever be issued again
	#step = 0
	#grants = 0
	#use // undefined: no more than a step was issued yet

	constructor(tag, options, source, onUnknown) {
		this.tag = tag
		this.options = options
		this.source = source
		this.onUnknown = onUnknown
	}

	/** Reserves one ID if one is in memory, and returns its place in the current span, or -1. */
	#reserve() {
		let span = this.#current
		if (span.used >= span.size) {
			if (!this.#pop()) {
				return -1
			}
			span = this.#current
		}
		const place = span.used++
		if (span.used > span.due) {
			span.defer()
			this.#topUp()
		}
		return place
	}

	tryNext() {
		const place = this.#reserve()
		const span = this.#current
		if (place < 0) {
			this.#startRefill()
			return undefined
		}
		return span.small >= 0 ? BigInt(span.small + place) : span.start + BigInt(place)
	}

	tryNextString() {
		const place = this.#reserve()
		const span = this.#current
		if (place < 0) {
			this.#startRefill()
			return undefined
		}
		return span.small >= 0 ? String(span.small + place) : String(span.start + BigInt(place))
	}

	async next() {
		return this.tryNext() ?? (await this.take(1))[0].start
	}

	async nextString() {
		return this.tryNextString() ?? String((await this.take(1))[0].start)
	}

	/** Takes n IDs as few ranges. */
	async take(n) {
		if (!Number.isSafeInteger(n) || n < 1 || n > this.options.maxStock) {
			throw invalid(`take from "${this.tag}": n = ${n} is not in 1 … ${this.options.maxStock}`)
		}
		const waiter = { left: n, ranges: [], delivered: false }
		if (this.#serve(waiter)) {
			return waiter.ranges
		}
		return this.#wait(waiter)
	}

	/** Gives a caller what it may have, and reports whether that is all. */
	#serve(waiter) {
		while (waiter.left > 0) {
			const span = this.#current
			const here = span.size - span.used
			if (here === 0) {
				if (!this.#pop()) {
					return false
				}
				continue
			}
			if (waiter.left > here && !this.#affords(waiter)) {
				return false
			}
			const n = Math.min(waiter.left, here)
			append(waiter.ranges, span.start + BigInt(span.used), BigInt(n))
			span.used += n
			waiter.left -= n
			if (span.used > span.due) {
				span.defer()
				this.#topUp()
			}
		}
		return true
	}

	/**
	 * Reports whether a caller should take the available IDs although it may have to wait for the rest. A
	 * batch that cannot be complete must not use up IDs that single calls could get.
	 */
	#affords({ left, delivered }) {
		const stock = this.#stock()
		return stock >= left || delivered || stock > this.#issued() + this.#step
	}

	#wait(waiter) {
		if (this.#end) {
			throw again(this.#end)
		}
		const trying = this.#refilling !== undefined
		this.#startRefill()
		const verdict = this.#health.verdict(this.options.wait, trying)
		if (verdict) {
			throw this.#exhausted(verdict)
		}
		return new Promise((resolve, reject) => {
			waiter.settle = (settle, value) => {
				waiter.cancel()
				settle(value)
			}
			Object.assign(waiter, { resolve, reject })
			this.#setTimer(waiter)
			this.#waiters.push(waiter)
		})
	}

	#setTimer(waiter) {
		waiter.cancel?.()
		waiter.cancel = patientTimer(this.options.wait, () => {
			this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
			waiter.reject(this.#exhausted(this.#health.error))
		})
	}

	#rejectAll(error) {
		this.#waiters.splice(0).forEach(w => w.settle(w.reject, error()))
	}

	/** Serves the waiting callers after a grant. */
	#serveWaiters() {
		this.#waiters = this.#waiters.filter(waiter => {
			waiter.delivered = true
			if (this.#serve(waiter)) {
				waiter.settle(waiter.resolve, waiter.ranges)
				return false
			}
			this.#setTimer(waiter) // the servers deliver, even if to other callers
			return true
		})
	}

	/** Makes the next span of the queue current; the current one is drained. */
	#pop() {
		if (this.#queue.length === 0) {
			return false
		}
		this.#retired += this.#current.size
		this.#current = this.#queue.shift()
		return true
	}

	#topUp() {
		if (this.#size() >= 0) {
			this.#startRefill()
		}
	}

	#startRefill() {
		if (this.#refilling || this.#closing || this.#end) {
			return
		}
		this.#health.resume(this.options.wait)
		this.#refilling = this.#refill().finally(() => {
			this.#refilling = undefined
			if (this.#waiters.length > 0) {
				this.#startRefill()
			}
		})
	}

	/** Calls the servers until the stock is full again. */
	async #refill() {
		for (let again = true; again;) {
			for (let pause = this.#health.pause(); pause > 0 && !this.#stopped(); pause = this.#health.pause()) {
				await this.#sleep(pause)
			}
			const n = this.#stopped() ? -1 : this.#size()
			if (n < 0) {
				return
			}
			const foreign = this.#health.error?.reason === 'FOREIGN_STORE' // the grant will be discarded
			try {
				again = this.#accept(await this.source.advance(this.tag, foreign ? 1 : n))
			} catch (err) {
				again = this.#refuse(err instanceof LeafError ? err : new LeafError('INTERNAL', String(err), 0, err))
			}
		}
	}

	#stopped() {
		return this.#closing || this.#end
	}

	/** A pause between two calls does not keep the process alive; waiting callers do. */
	#sleep(ms) {
		return new Promise(resolve => {
			const timer = setTimeout(resolve, Math.ceil(ms))
			timer.unref()
			this.#wake = () => {
				clearTimeout(timer)
				resolve()
			}
		})
	}

	/** Returns how many IDs to ask for now; 0: a step of the tag; -1: none. */
	#size() {
		if (this.#grants === 0) {
			return 0
		}
		const stock = this.#stock()
		const missing = this.#waiters.reduce((sum, w) => sum + w.left, 0)
		const step = this.#step
		let n = refillSize({ stock, missing, step, issued: this.#issued(), recent: this.#recent(), maxStock: this.options.maxStock })
		if (n > 0 && this.#health.error) { // answers may be lost again and again: that must cost little
			n = Math.max(1, Math.min(n, Math.max(step, missing - stock)))
		}
		return n > 0 ? n : -1
	}

	#recent() {
		const issued = this.#issued()
		if (!this.#use) {
			if (issued <= this.#step) {
				return issued
			}
			this.#use = new RecentUse(this.options.outageBudget, performance.now())
		}
		return this.#use.observe(performance.now(), issued)
	}

	#accept(grant) {
		this.granted += Number(grant.end - grant.start)
		if (this.#end) {
			return false
		}
		this.#grants++
		this.#step = grant.step
		this.#health.succeeded()
		this.#queue.push(new Span(grant))
		this.#serveWaiters()
		return true
	}

	#refuse(error) {
		if (this.#end) {
			return false
		}
		if (error.reason === 'UNKNOWN_TAG') {
			this.#finish(error)
			this.onUnknown()
			return false
		}
		this.failures++
		this.#health.failed(error, this.#waiters.length > 0)
		const verdict = this.#health.verdict(this.options.wait, true)
		if (verdict) {
			this.#rejectAll(() => this.#exhausted(verdict))
		}
		return !this.#health.isVerdict() && (this.#waiters.length > 0 || this.#grants > 0)
	}

	/** Stops for good, and gives the unused end of the stock back if no other program took IDs since. */
	async close() {
		if (this.#closing || this.#end) {
			return
		}
		this.#closing = true
		this.#wake?.()
		let timer
		const late = new Promise(resolve => { timer = setTimeout(resolve, this.options.callTimeout, true) })
		const quiet = !(await Promise.race([this.#refilling, late]))
		clearTimeout(timer)
		const rest = this.#finish(new LeafError('CLOSED', `tag "${this.tag}": the client is closed`))
		if (quiet && rest) {
			await this.source.giveBack(this.tag, rest.last, rest.start)
			this.returned += Number(rest.last.end - rest.start)
		}
	}

	/** Drops the stock and fails the waiting callers. Returns the unused IDs at the end of the last
	 * grants that follow one another. */
	#finish(error) {
		this.#end = error
		let rest
		for (const span of [this.#current, ...this.#queue]) {
			const start = span.start + BigInt(span.used)
			this.#retired += span.used
			if (span.used < span.size) {
				const follows = rest && rest.last.end === start && rest.last.server === span.grant.server
				rest = { start: follows ? rest.start : start, last: span.grant }
			}
		}
		this.#current = new Span(NO_SPAN)
		this.#queue = []
		this.#rejectAll(() => again(error))
		this.#wake?.()
		return rest
	}

	#exhausted(cause) {
		const prefix = `tag "${this.tag}": no IDs in memory`
		if (!cause) {
			return new LeafError('EXHAUSTED', `${prefix}, and no server has answered within ${this.options.wait} ms`)
		}
		return new LeafError(isTold(cause.reason) ? cause.reason : 'EXHAUSTED', `${prefix}: ${cause.message}`, cause.status, cause)
	}

	#stock() {
		return this.#queue.reduce((sum, s) => sum + s.size, this.#current.size - this.#current.used)
	}

	#issued() {
		return this.#retired + this.#current.used
	}

	stats() {
		const { tag, granted, returned, failures } = this
		return { tag, stock: this.#stock(), issued: this.#issued(), granted, returned, failures }
	}
}

function append(ranges, start, n) {
	const last = ranges[ranges.length - 1]
	if (last && last.end === start) {
		last.end += n
	} else {
		ranges.push({ start, end: start + n })
	}
}

const again = error => new LeafError(error.reason, error.message, error.status, error)

module.exports = { Stock }
