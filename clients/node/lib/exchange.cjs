'use strict'

const http = require('node:http')
const https = require('node:https')
const { LeafError } = require('./error.cjs')

const MAX_ANSWER = 1 << 20

/** Sends one request to one server and resolves to status and text. abort() ends it. */
function exchange({ base, agent, method, path, body, token }) {
	let request
	const done = new Promise((resolve, reject) => {
		const headers = { Accept: 'application/json' }
		if (token) {
			headers.Authorization = `Bearer ${token}`
		}
		if (body !== undefined) {
			headers['Content-Type'] = 'application/json'
			headers['Content-Length'] = Buffer.byteLength(body)
		}
		request = (base.startsWith('https:') ? https : http).request(base + path, { method, headers, agent }, answer => {
			receive(answer, request).then(text => resolve({ status: answer.statusCode, text }), reject)
		})
		request.on('error', reject)
		request.end(body)
	})
	return { done, abort: () => request.destroy() }
}

async function receive(answer) {
	answer.setEncoding('utf8')
	let text = ''
	for await (const part of answer) {
		text += part
		if (text.length > MAX_ANSWER) {
			throw new Error('the answer is too long')
		}
	}
	return text
}

/** Reads an answer: the object of a success, or the error and whether another server should be asked. */
function interpret(host, { status, text }, read) {
	if (status >= 300) {
		return explain(host, status, text)
	}
	try {
		return { result: read(text === '' ? undefined : object(text)) }
	} catch (err) {
		if (err instanceof LeafError) {
			return { error: err, faulty: true }
		}
		return { error: new LeafError('UNAVAILABLE', `leaf server ${host} gave no usable answer: ${err.message}`, 0, err), faulty: true }
	}
}

function object(text) {
	const value = JSON.parse(text)
	if (value === null || typeof value !== 'object' || Array.isArray(value)) {
		throw new Error('it is no object')
	}
	return value
}

const STATUS_REASONS = { 401: 'UNAUTHENTICATED', 403: 'FORBIDDEN' }

/** Reads an error, of the HTTP API or of Connect. One without a reason is not Leaf's: a proxy's page, say. */
function explain(host, status, text) {
	let problem = {}
	try {
		problem = object(text)
	} catch {
		// no JSON object
	}
	const told = named(problem.reason) || detailed(problem.details)
	const reason = told || STATUS_REASONS[status] || 'UNAVAILABLE'
	const error = new LeafError(reason, `leaf server ${host}: ${problem.detail || problem.message || `HTTP status ${status}`}`, status)
	return { error, faulty: !told || status >= 500 || status === 401 || status === 403 }
}

/** Other programs have reasons such as NotFound. */
const named = reason => (typeof reason === 'string' && /^[A-Z_]+$/.test(reason) ? reason : '')

/** Returns the reason in a google.rpc.ErrorInfo: the first field of the message. */
function detailed(details) {
	const info = Array.isArray(details) && details.find(d => d?.type === 'google.rpc.ErrorInfo')
	const message = info && Buffer.from(String(info.value), 'base64')
	return message && message[0] === 0x0a ? message.subarray(2, 2 + message[1]).toString() : ''
}

module.exports = { exchange, interpret }
