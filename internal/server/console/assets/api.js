// Calls of the server. The token lives in this variable alone, and ends with the page.
import { lang } from './i18n.js'

let token = ''
export const setToken = text => { token = text }
export const hasToken = () => token !== ''

const headers = more => ({ ...(token ? { Authorization: `Bearer ${token}` } : {}), 'Accept-Language': lang(), ...more })

// A Failure has the status of an answer and the server's text.
export class Failure extends Error {
	constructor(status, text) { super(text); this.status = status }
}

async function failure(response) {
	const text = await response.text()
	try {
		const body = JSON.parse(text)
		return new Failure(response.status, body.message ?? body.detail ?? body.title ?? text)
	} catch { return new Failure(response.status, text.trim() || response.statusText) }
}

async function request(path, init) {
	let response
	try { response = await fetch(path, { ...init, signal: AbortSignal.timeout(30_000) }) } catch (e) { throw new Failure(0, e.name === 'TimeoutError' ? 'the server did not answer within 30 s' : 'the server cannot be reached') }
	if (!response.ok) throw await failure(response)
	return response.json()
}

// call calls a procedure of a service by Connect, as JSON, in which int64 are strings.
export const call = (service, method, message = {}) => request(`/leaf.v1.${service}/${method}`, { method: 'POST', headers: headers({ 'Content-Type': 'application/json', 'Connect-Protocol-Version': '1' }), body: JSON.stringify(message) })
export const admin = (method, message) => call('AdminService', method, message)
export const history = tag => request(`/console/history?tag=${encodeURIComponent(tag)}`, { headers: headers() })

// listen reads server-sent events until stop is aborted, and reconnects. It calls on(name, data)
// for an event, and on('lost', failure) whenever the stream is gone.
export async function listen(tags, on, stop) {
	for (let wait = 500; !stop.aborted; wait = Math.min(wait * 2, 8000)) {
		try {
			const response = await fetch('/console/events?' + new URLSearchParams(tags.map(tag => ['tag', tag])), { headers: headers(), signal: stop })
			if (!response.ok) throw await failure(response)
			wait = 500
			await read(response.body.getReader(), on)
			throw new Failure(0, 'the server has ended the connection')
		} catch (e) {
			if (stop.aborted) return
			const lost = e instanceof Failure ? e : new Failure(0, 'the server cannot be reached')
			on('lost', lost)
			if (lost.status === 401 || lost.status === 403) return
		}
		await new Promise(done => { const timer = setTimeout(done, wait); stop.addEventListener('abort', () => { clearTimeout(timer); done() }, { once: true }) })
	}
}

async function read(reader, on) {
	const decoder = new TextDecoder()
	let text = '', timer
	const silent = () => { clearTimeout(timer); timer = setTimeout(() => reader.cancel(), 25_000) } // a comment comes every 10 s
	silent()
	try {
		for (;;) {
			const { done, value } = await reader.read()
			if (done) return
			silent()
			text += decoder.decode(value, { stream: true })
			for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
				const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? []
				if (name) on(name, JSON.parse(data))
			}
		}
	} finally { clearTimeout(timer) }
}
