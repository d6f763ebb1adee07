'use strict'

const { LeafError, invalid, numberOption } = require('./error.cjs')
const { Servers, connect } = require('./servers.cjs')
const { Stock } = require('./stock.cjs')

const UNKNOWN_FOR = 1000 // milliseconds that an unknown tag is refused without another call
const MAX_CALLS = 64 // for ranges, under way
const MAX_ID = 2n ** 63n - 1n

/** Takes ranges off what servers hold in memory. */
class ServerSource {
	#latest = new Map() // tag to the version of its latest grant
	#store // identity of the servers' store
	#running = 0
	#queue = []

	constructor(servers) {
		this.servers = servers
	}

	/** Takes a range of up to n IDs; 0 means the step of the tag. */
	async advance(tag, n) {
		while (this.#running >= MAX_CALLS) {
			await new Promise(resolve => this.#queue.push(resolve))
		}
		this.#running++
		try {
			const fields = { tag, count: String(n), before: this.#latest.get(tag) }
			const grant = await this.servers.repeat(connect('Advance', fields, (answer, server) => this.#read(answer, server, n)), true)
			this.#latest.set(tag, grant.version)
			return grant
		} finally {
			this.#running--
			this.#queue.shift()?.()
		}
	}

	#read(answer, server, n) {
		const { start, end } = readRange(answer?.range)
		const step = Number(answer.step)
		if (n > 0 && end - start > BigInt(n) || !(step >= 1)) {
			throw new Error(`it granted [${start}, ${end}) with step ${answer.step} when asked for ${n}`)
		}
		this.checkStore(server, answer.store)
		return { start, end, step, server, version: answer.version }
	}

	/** Refuses a server of another store than the first one: its IDs may be in use. */
	checkStore(server, identity) {
		if (!identity) {
			return
		}
		this.#store ??= identity
		server.proven = this.#store === identity
		if (!server.proven) {
			throw new LeafError('FOREIGN_STORE', `leaf server ${server.host} has another store: its identity is ${identity}, that of the known store is ${this.#store}`)
		}
	}

	/** Gives the IDs from start to the end of the last grant back. */
	giveBack(tag, last, start) {
		const fields = { tag, start: String(start), end: String(last.end), version: last.version }
		return this.servers.once(connect('Return', fields, () => undefined), last.server)
	}
}

function readRange(range) {
	const start = BigInt(range?.start ?? 0)
	const end = BigInt(range?.end ?? 0)
	if (start < 0n || end <= start || end > MAX_ID) {
		throw new Error(`it has the range [${start}, ${end})`)
	}
	return { start, end }
}

/** Makes a call for each ID. */
class Ordered {
	constructor(servers, source, scheme, key) {
		Object.assign(this, { servers, source, scheme, key })
	}

	async next() {
		return (await this.nextMany(1))[0]
	}

	async nextString() {
		return String(await this.next())
	}

	async nextMany(n) {
		return flatten((await this.issue({ n, hedged: true })).ranges)
	}

	/** Makes one call. An empty period means the present one; form: texts in place of numbers. */
	async issue({ n = 1, period = '', form = false, hedged = false }) {
		if (!Number.isSafeInteger(n) || n < 1) {
			throw invalid(`n = ${n} is below 1`)
		}
		const fields = { scheme: this.scheme, key: this.key, count: n, tellStore: true, period, form }
		return this.servers.repeat(connect('Take', fields, (answer, server) => {
			this.source.checkStore(server, answer?.store)
			if (period && answer?.period !== period) {
				throw new LeafError('UNSUPPORTED', `leaf server ${server.host} knows no periods: upgrade it`)
			}
			const texts = answer?.texts ?? []
			if (form && texts.length === 0) {
				throw new LeafError('UNSUPPORTED', `leaf server ${server.host} knows no forms: upgrade it`)
			}
			const ranges = (answer?.ranges ?? []).map(readRange)
			const count = ranges.reduce((sum, { start, end }) => sum + (end - start), BigInt(texts.length))
			if (count !== BigInt(n)) {
				throw new Error(`it has ${count} IDs when asked for ${n}`)
			}
			return { ranges, texts, period: answer.period ?? '' }
		}), hedged)
	}
}

/** Returns the IDs of ranges. */
function flatten(ranges) {
	const ids = []
	for (const { start, end } of ranges) {
		for (let id = start; id < end; id++) {
			ids.push(id)
		}
	}
	return ids
}

/**
 * Takes IDs from Leaf servers at the speed of memory.
 *
 * 1. No ID is issued twice, by this program or any other. A call whose answer is lost costs IDs.
 * 2. A call for an ID makes no request while there is stock.
 * 3. A crash loses at most the stock; close gives it back unless another program took IDs since.
 * 4. The IDs of one tag increase within a range. Between ranges and programs they interleave.
 */
class LeafClient {
	#servers
	#source
	#options
	#stocks = new Map()
	#closing
	#timers = new Set()

	constructor(servers, options = {}) {
		this.#servers = new Servers(servers, options)
		this.#source = new ServerSource(this.#servers)
		this.#options = {
			outageBudget: numberOption('outageBudget', options.outageBudget, 600_000, 1),
			maxStock: numberOption('maxStock', options.maxStock, 10_000_000, 1, 2 ** 40),
			wait: numberOption('wait', options.wait, 1000, 1),
			callTimeout: this.#servers.timeout,
		}
	}

	#stock(tag) {
		let stock = this.#stocks.get(tag)
		if (stock === undefined) {
			if (this.#closing) {
				throw new LeafError('CLOSED', 'the client is closed')
			}
			if (typeof tag !== 'string') {
				throw invalid('a tag is a string')
			}
			stock = new Stock(tag, this.#options, this.#source, () => this.#forgetSoon(tag))
			this.#stocks.set(tag, stock)
		}
		return stock
	}

	#forgetSoon(tag) {
		const timer = setTimeout(() => {
			this.#timers.delete(timer)
			this.#stocks.delete(tag)
		}, UNKNOWN_FOR)
		timer.unref()
		this.#timers.add(timer)
	}

	async next(tag) {
		return this.#stock(tag).next()
	}

	async nextString(tag) {
		return this.#stock(tag).nextString()
	}

	tryNext(tag) {
		return this.#stock(tag).tryNext()
	}

	async take(tag, n) {
		return this.#stock(tag).take(n)
	}

	/** Returns the generator of a tag. */
	tag(tag) {
		return {
			next: async () => this.#stock(tag).next(),
			nextString: async () => this.#stock(tag).nextString(),
			nextMany: async n => flatten(await this.#stock(tag).take(n)),
			tryNext: () => this.#stock(tag).tryNext(),
			tryNextString: () => this.#stock(tag).tryNextString(),
			take: async n => this.#stock(tag).take(n),
		}
	}

	/** Returns a generator that makes a call for each ID, for IDs that increase over all programs. */
	ordered(scheme, key = '') {
		return new Ordered(this.#servers, this.#source, scheme, key)
	}

	/** Makes one call for numbers of a tag with periods, or for their texts. */
	async issue(tag, { n, period, form } = {}) {
		return this.ordered('segment', tag).issue({ n, period, form })
	}

	stats() {
		return [...this.#stocks.values()].map(s => s.stats()).sort((a, b) => (a.tag < b.tag ? -1 : 1))
	}

	close() {
		this.#closing ??= this.#close()
		return this.#closing
	}

	async #close() {
		this.#timers.forEach(clearTimeout)
		// IDs that the servers do not take back are lost: normal if others have taken IDs since
		await Promise.allSettled([...this.#stocks.values()].map(s => s.close()))
		this.#servers.close()
	}
}

module.exports = { LeafClient }
