'use strict'

const os = require('node:os')
const { performance } = require('node:perf_hooks')
const { RegistryClock } = require('./clock.cjs')
const { LeafError, invalid } = require('./error.cjs')
const { readLayout } = require('./layout.cjs')
const { notify } = require('./notify.cjs')
const { Servers } = require('./servers.cjs')

const PATH = '/v1/workers/leases'
const MAX_RETRY = 1000 // milliseconds after a renewal that failed
const MIN_RETRY = 50

/**
 * The right of this process to make IDs of one worker ID, for a snowflake library of your own.
 *
 * The time t inside each ID must be floor <= t < limit: ask use(t) before you return an ID. The lease
 * renews itself, so the limit grows. It may be used up to the limit, whatever happens to the servers. No
 * clock has to be right for that.
 */
class WorkerLease {
	#servers
	#ttl
	#onLost
	#onRenewed
	#owner // of the servers
	#clock
	#limit
	#lasts // milliseconds that a claim or a renewal gives
	#used // latest time in an ID
	#sealed = false
	#lost = false
	#timer
	#releasing

	static claim(servers, pool, options = {}) {
		let own
		try {
			own = new Servers(servers, options)
		} catch (err) {
			return Promise.reject(err)
		}
		return WorkerLease.claimFrom(own, pool, options, true).catch(err => {
			own.close()
			throw err
		})
	}

	/** Claims a lease of servers that the caller keeps, unless own is true. */
	static async claimFrom(servers, pool, options, own = false) {
		const ttl = ttlText(options.ttl)
		const fields = { pool, holder: options.holder ?? os.hostname(), ttl }
		const { answer, clock } = await call(servers, 'ClaimLease', 'POST', PATH, fields)
		return new WorkerLease(servers, own, ttl, options, answer, clock)
	}

	constructor(servers, own, ttl, options, answer, clock) {
		this.#servers = servers
		this.#owner = own
		this.#ttl = ttl
		this.#onLost = options.onLost
		this.#onRenewed = options.onRenewed
		this.#clock = clock
		this.#limit = answer.limit
		this.#lasts = answer.limit - answer.now
		this.id = answer.lease
		this.pool = answer.pool
		this.worker = answer.worker
		this.layout = readLayout(answer.layout)
		this.floor = answer.floor
		if (!this.id || !Number.isSafeInteger(this.worker) || this.worker < 0 || this.worker >= 2 ** this.layout.workerBits) {
			throw new LeafError('UNAVAILABLE', 'the answer to a claim has no lease')
		}
		Object.defineProperty(this, 'id', { enumerable: false }) // a secret does not belong into logs
		this.#renewIn(answer.renew_at - answer.now)
	}

	get limit() {
		return this.#limit
	}

	#renewIn(ms) {
		this.#timer = setTimeout(() => this.#renew(), Math.max(1, ms))
		this.#timer.unref()
	}

	async #renew() {
		if (this.#sealed || this.#lost) {
			return
		}
		try {
			const { answer, clock } = await call(this.#servers, 'RenewLease', 'POST', `${PATH}/${this.id}`, { ttl: this.#ttl })
			this.#limit = Math.max(this.#limit, answer.limit)
			this.#clock = clock
			this.#renewIn(answer.renew_at - answer.now)
			this.#onRenewed?.()
		} catch (err) {
			const left = this.#limit - this.#clock.latest()
			if (err.reason === 'LEASE_LOST' || left < this.#lasts / 10) {
				this.#lose(err)
				return
			}
			this.#renewIn(Math.max(MIN_RETRY, Math.min(MAX_RETRY, (left - this.#lasts / 10) / 4)))
		}
	}

	#lose(err) {
		if (!this.#sealed && !this.#lost) {
			this.#lost = true
			notify('onLost', this.#onLost, err)
		}
	}

	use(time) {
		return this.useSpan(time, time)
	}

	/** Reports whether an ID with the times from first to last may be returned. */
	useSpan(first, last) {
		if (this.#sealed || !(first >= this.floor && last < this.#limit)) {
			return false
		}
		if (this.#used === undefined || last > this.#used) {
			this.#used = last
		}
		return true
	}

	seal() {
		this.#sealed = true
		clearTimeout(this.#timer)
	}

	/** A second call waits for the first; after an error it tries again. */
	release() {
		this.seal()
		this.#releasing ??= this.#release().catch(err => {
			this.#releasing = undefined
			throw err
		})
		return this.#releasing
	}

	async #release() {
		const path = `${PATH}/${this.id}?used=${this.#used ?? 'none'}`
		try {
			await this.#servers.repeat({ procedure: 'ReleaseLease', method: 'DELETE', path, read: () => undefined })
		} catch (err) {
			if (err.reason !== 'LEASE_LOST') { // it is over already
				throw err
			}
		}
	}

	async close() {
		await this.release().catch(() => {}) // the worker ID is free at the limit
		if (this.#owner) {
			this.#servers.close()
		}
	}

	now() {
		return this.#clock.earliest()
	}

	isValid() {
		return !this.#sealed && this.#clock.latest() < this.#limit
	}
}

function ttlText(ms) {
	if (ms !== undefined && (!Number.isSafeInteger(ms) || ms < 1000 || ms % 1000 !== 0)) {
		throw invalid(`ttl: ${ms} ms are not whole seconds`)
	}
	return ms === undefined ? undefined : `${ms / 1000}s`
}

async function call(servers, procedure, method, path, fields) {
	let sent
	const read = answer => {
		const numbers = [answer?.now, answer?.limit, answer?.renew_at]
		if (!numbers.every(Number.isSafeInteger)) {
			throw new Error('it has no lease')
		}
		return { answer, clock: new RegistryClock(answer.now, sent) }
	}
	sent = performance.now() // of the first request: earlier than that of the one which is answered
	return servers.repeat({ procedure, method, path, body: JSON.stringify(fields), read })
}

module.exports = { WorkerLease }
