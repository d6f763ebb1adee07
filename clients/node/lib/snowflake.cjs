'use strict'

const { performance } = require('node:perf_hooks')
const { LeafError, invalid, numberOption } = require('./error.cjs')
const { WorkerLease } = require('./lease.cjs')
const { Servers } = require('./servers.cjs')

const MAX_AHEAD = 2000 // milliseconds that IDs may be ahead of the clock
const MAX_PAUSE = 2000 // milliseconds between two claims that failed
const SPREAD = 3 // bits of the sequence that an idle tick leaves to those that follow
const ENDED = 'the lease does not cover the time'
const AHEAD = 'the clock is behind'
const OVERFLOW = 'the layout is at its end'

/** The IDs under one lease. */
class Sequence {
	#tick
	#sequence
	#baseTick = -1
	#base = 0n // the ID of #baseTick with sequence 0

	constructor(lease) {
		this.lease = lease
		const { epoch, tickMs, sequenceBits } = lease.layout
		this.#tick = Math.ceil((Math.max(lease.floor, epoch) - epoch) / tickMs) - 1
		this.#sequence = this.limit = 2 ** sequenceBits - 1 // the next ID is of the next tick
	}

	/** Moves on to the next ID and returns why it may not be issued, or undefined. */
	advance() {
		const { epoch, tickMs, timeBits } = this.lease.layout
		const now = this.lease.now()
		let [tick, sequence] = this.#candidate(now)
		const begin = epoch + tick * tickMs
		if (tick >= 2 ** timeBits) {
			return OVERFLOW
		}
		if (begin > now + MAX_AHEAD) {
			return this.covers(begin) ? AHEAD : ENDED
		}
		if (!this.lease.useSpan(begin, begin + tickMs - 1)) {
			return ENDED
		}
		this.#tick = tick
		this.#sequence = sequence
		return undefined
	}

	/** Returns the ID that advance has moved to. */
	id() {
		if (this.#baseTick !== this.#tick) {
			this.#base = this.lease.layout.compose(this.#tick, this.lease.worker, 0)
			this.#baseTick = this.#tick
		}
		return this.#base + BigInt(this.#sequence)
	}

	#candidate(now) {
		const { epoch, tickMs, sequenceBits } = this.lease.layout
		const tick = Math.floor((now - epoch) / tickMs)
		if (tick > this.#tick) {
			return [tick, firstSequence(tick, sequenceBits)]
		}
		return this.#sequence < this.limit ? [this.#tick, this.#sequence + 1] : [this.#tick + 1, 0]
	}

	/** Reports whether the next ID, or one whose tick begins then, has a time below the limit. */
	covers(begin) {
		const { epoch, tickMs } = this.lease.layout
		const from = begin ?? epoch + this.#candidate(this.lease.now())[0] * tickMs
		return from + tickMs <= this.lease.limit
	}
}

/** Returns the first sequence number of an idle tick, so that IDs of quiet times are not all even. */
function firstSequence(tick, bits) {
	const spread = Math.min(bits - SPREAD, 32)
	return spread <= 0 ? 0 : Math.imul(tick % 2 ** 32, 0x9e3779b1) >>> 32 - spread
}

/**
 * Makes snowflake IDs in this process, with a worker ID that it leases from Leaf servers.
 *
 * It renews the lease, and claims another one when that fails. It compares the time inside each ID with
 * the lease before it returns the ID, so a process that was paused makes no old IDs. Its time is that
 * of the registry, counted by the monotonic clock: the date of this machine does not matter.
 */
class LeafSnowflake {
	#servers
	#pool
	#options
	#wait
	#current
	#error // why there is no lease; undefined: none is known
	#failures = 0
	#closed = false
	#closing
	#retry
	#replacing // settled unless a claim is under way
	#waiting = new Set()

	/** @private Use open. */
	constructor(servers, pool, options, wait) {
		this.#servers = servers
		this.#pool = pool
		this.#wait = wait
		this.#options = { ...options, onLost: why => this.#replace(why), onRenewed: () => this.#signal() }
	}

	static async open(servers, pool, options = {}) {
		const wait = numberOption('wait', options.wait, 1000, 1)
		const startWait = numberOption('startWait', options.startWait, 10_000, 0)
		const own = new Servers(servers, options)
		const generator = new LeafSnowflake(own, pool, options, wait)
		try {
			await generator.#firstClaim(startWait)
		} catch (err) {
			own.close()
			throw err
		}
		return generator
	}

	/** Claims a lease, and waits if there may be one soon: a stopped process may have been ahead of the clock. */
	async #firstClaim(startWait) {
		const deadline = performance.now() + startWait
		for (let tries = 0; ; tries++) {
			try {
				this.#current = new Sequence(await this.#claim())
				return
			} catch (err) {
				const soon = err.status === 503 || err.reason === 'UNAVAILABLE' || err.reason === 'CONFLICT'
				if (!soon || performance.now() + pause(tries) > deadline) {
					throw err
				}
				await new Promise(resolve => setTimeout(resolve, pause(tries)))
			}
		}
	}

	#claim() {
		return WorkerLease.claimFrom(this.#servers, this.#pool, this.#options)
	}

	get layout() {
		return this.#current.lease.layout
	}

	get lease() {
		return this.#current.lease
	}

	tryNext() {
		const why = this.#advance()
		return why === undefined ? this.#current.id() : undefined
	}

	#advance() {
		if (this.#closed) {
			throw new LeafError('CLOSED', 'the generator is closed')
		}
		const why = this.#current.advance()
		if (why === OVERFLOW) {
			throw new LeafError('OVERFLOW', 'the layout has no ID of this time')
		}
		return why
	}

	async next() {
		return this.tryNext() ?? this.#await()
	}

	async nextString() {
		return String(await this.next())
	}

	async nextMany(n) {
		if (!Number.isSafeInteger(n) || n < 1) {
			throw invalid(`n = ${n} is below 1`)
		}
		const ids = []
		while (ids.length < n) {
			ids.push(await this.next())
		}
		return ids
	}

	/** Returns an ID after a wait. */
	async #await() {
		const deadline = performance.now() + this.#wait
		for (;;) {
			const why = this.#advance()
			if (why === undefined) {
				return this.#current.id()
			}
			const left = deadline - performance.now()
			if (left <= 0) {
				throw this.#tooLate(why)
			}
			await this.#pause(why === AHEAD ? Math.min(left, 1) : left)
		}
	}

	#tooLate(why) {
		if (why === AHEAD) {
			return new LeafError('EXHAUSTED', 'more IDs in a second than the layout has')
		}
		const cause = this.#error
		return new LeafError('NO_WORKER_ID', `this process has no lease of a worker ID${cause ? `: ${cause.message}` : ''}`, cause?.status, cause)
	}

	/** Waits until another lease has come, or the limit of this one has grown, or the time is over. */
	#pause(ms) {
		return new Promise(resolve => {
			const done = () => {
				clearTimeout(timer)
				this.#waiting.delete(done)
				resolve()
			}
			const timer = setTimeout(done, ms)
			this.#waiting.add(done)
		})
	}

	#signal() {
		this.#error = undefined
		this.#wakeAll()
	}

	#wakeAll() {
		for (const done of [...this.#waiting]) {
			done()
		}
	}

	#replace(why) {
		this.#replacing = this.#claimAgain(why)
	}

	/** Claims another lease and gives the lost one back. */
	async #claimAgain(why) {
		try {
			const next = await this.#claim()
			const old = this.#closed ? next : this.#current.lease
			if (!this.#closed) {
				this.#current = new Sequence(next)
			}
			this.#failures = 0
			this.#signal()
			await old.close()
		} catch (err) {
			this.#error = err ?? why
			if (!this.#closed) {
				this.#retry = setTimeout(() => this.#replace(why), pause(this.#failures++))
				this.#retry.unref()
			}
		}
	}

	close() {
		this.#closing ??= this.#close()
		return this.#closing
	}

	async #close() {
		this.#closed = true
		clearTimeout(this.#retry)
		this.#wakeAll()
		await this.#current.lease.close()
		await this.#replacing // it gives the lease back that it claims
		this.#servers.close()
	}
}

const pause = failures => Math.min(MAX_PAUSE, 50 * 2 ** Math.min(failures, 10))

module.exports = { LeafSnowflake }
