'use strict'

const fs = require('node:fs/promises')
const http = require('node:http')
const https = require('node:https')
const { performance } = require('node:perf_hooks')
const { LeafError, invalid, numberOption } = require('./error.cjs')
const { exchange, interpret } = require('./exchange.cjs')
const { notify } = require('./notify.cjs')
const { Tally, isIgnorant } = require('./tally.cjs')
const { patientTimer } = require('./timer.cjs')
const { parseServers } = require('./url.cjs')

const FIRST_BACKOFF = 100
const MAX_BACKOFF = 5000
const IDLE = 20_000 // how long an unused connection is kept: less than servers and proxies do
const TURN = 2000 // how long the others have to answer after a server of the known store lacked the tag
const TOKEN_AGE = 1000 // after it a token's file is read again

/** One of the servers, and how its latest calls ended. */
class Server {
	fails = 0 // in a row
	retryAt = 0
	proven = false // its latest answer with an identity had that of the known store

	constructor(base) {
		this.base = base
		this.host = base.slice(base.indexOf('://') + 3)
	}

	failed() {
		const pause = Math.min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** Math.min(this.fails++, 10))
		this.retryAt = performance.now() + pause * (0.5 + Math.random() / 2)
	}

	/** Reports whether calls should ask it last. */
	isFailing() {
		return this.fails > 0 && performance.now() < this.retryAt
	}
}

/** The token for the servers: a fixed one, that of a file, or none. */
class Token {
	#read = 0

	constructor(value, file) {
		this.value = value?.trim()
		this.file = file
	}

	async get() {
		if (this.file !== undefined && (this.value === undefined || performance.now() - this.#read > TOKEN_AGE)) {
			const text = (await fs.readFile(this.file, 'utf8')).trim()
			if (text === '') {
				throw new Error(`read the token: ${this.file} is empty`)
			}
			this.value = text
			this.#read = performance.now()
		}
		return this.value
	}
}

/**
 * Calls one of several servers with one store. It asks the one first that answered last and knew the
 * tag, and those with a recent failure last.
 */
class Servers {
	#active
	#closed = false

	constructor(url, options) {
		const { servers, token } = parseServers(url)
		if ([token, options.token, options.tokenFile].filter(t => t !== undefined).length > 1) {
			throw invalid('a token is given twice: in the URL, as token or by tokenFile')
		}
		this.all = servers.map(base => new Server(base))
		this.token = new Token(token ?? options.token, options.tokenFile)
		this.timeout = numberOption('callTimeout', options.callTimeout, 5000, 1)
		this.hedge = numberOption('hedge', options.hedge, 100, 0)
		this.onCall = options.onCall
		const secure = servers[0].startsWith('https:')
		this.agent = secure ? new https.Agent({ ...options.tls, keepAlive: true, timeout: IDLE }) : new http.Agent({ keepAlive: true, timeout: IDLE })
		this.#active = Math.floor(Math.random() * servers.length) // so that not all programs begin with the first
	}

	close() {
		this.#closed = true
		this.agent.destroy()
	}

	/** Makes a call that may be repeated at another server, and at two at once if hedged. */
	repeat(request, hedged = false) {
		return this.#call(request, this.#order(), hedged && this.hedge > 0)
	}

	/** Makes a call that must not be repeated, to one server. */
	once(request, server) {
		return this.#call(request, [server], false)
	}

	#order() {
		const turned = [...this.all.slice(this.#active), ...this.all.slice(0, this.#active)]
		return [...turned.filter(s => !s.isFailing()), ...turned.filter(s => s.isFailing())]
	}

	#call(request, order, hedged) {
		return new Promise((resolve, reject) => {
			if (this.#closed) {
				reject(new LeafError('CLOSED', 'the client is closed'))
				return
			}
			const tally = new Tally()
			const running = new Set()
			let asked = 0
			let hedgeTimer
			let cancelTurn
			const finish = (settle, value) => {
				clearTimeout(hedgeTimer)
				cancelTurn?.()
				running.forEach(abort => abort())
				running.clear() // how they end does not count
				settle(value)
			}
			const ask = () => {
				const server = order[asked++]
				const { done, abort } = this.#ask(server, request)
				running.add(abort)
				clearTimeout(hedgeTimer)
				if (hedged && asked < order.length) {
					hedgeTimer = setTimeout(ask, this.hedge)
				}
				done.then(outcome => {
					if (running.delete(abort)) { // otherwise another one has answered
						end(server, outcome)
					}
				})
			}
			const end = (server, { result, error, faulty }) => {
				const ignorant = isIgnorant(error)
				if (!faulty && !ignorant) {
					this.#active = Math.max(0, this.all.indexOf(server))
					server.fails = 0
					finish(error ? reject : resolve, error ?? result)
					return
				}
				if (ignorant) {
					server.fails = 0
				} else {
					server.failed()
				}
				tally.add(server, error)
				if (tally.proven) {
					cancelTurn ??= patientTimer(TURN, () => finish(reject, tally.error()))
				}
				if (asked < order.length) {
					ask()
				} else if (running.size === 0) {
					finish(reject, tally.error())
				}
			}
			ask()
		})
	}

	/** Asks one server. done never rejects. */
	#ask(server, request) {
		const begun = performance.now()
		let stop = () => {}
		const ended = new Promise(resolve => { stop = resolve })
		const cancel = patientTimer(this.timeout, () => stop({ error: unavailable(server, `has not answered within ${this.timeout} ms`), faulty: true }))
		const done = Promise.race([ended, this.#exchange(server, request, ended)]).then(outcome => {
			cancel()
			notify('onCall', this.onCall, { server: server.host, procedure: request.procedure, took: performance.now() - begun, error: outcome.error })
			return outcome
		})
		return { done, abort: () => stop({ error: unavailable(server, 'was not waited for'), faulty: true }) }
	}

	async #exchange(server, { method, path, body, read }, ended) {
		try {
			const token = await this.token.get()
			const { done, abort } = exchange({ base: server.base, agent: this.agent, method, path, body, token })
			ended.then(abort)
			return interpret(server.host, await done, answer => read(answer, server))
		} catch (err) {
			return { error: unavailable(server, `is unavailable: ${err.message || err.code}`, err), faulty: true }
		}
	}
}

function unavailable(server, text, cause) {
	return new LeafError('UNAVAILABLE', `leaf server ${server.host} ${text}`, 0, cause)
}

/** A call of LeafService. */
function connect(procedure, fields, read) {
	return { procedure, method: 'POST', path: `/leaf.v1.LeafService/${procedure}`, body: JSON.stringify(fields), read }
}

module.exports = { Servers, connect }
