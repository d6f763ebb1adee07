'use strict'

const { invalid } = require('./error.cjs')

const SCHEMES = { http: 'http', https: 'https', leaf: 'http', leafs: 'https' }

/** Takes the URL of one or several servers apart. No error message holds the token. */
function parseServers(text) {
	const found = typeof text === 'string' && /^([a-z]+):\/\/(?:(.*)@)?([^@]*)$/i.exec(text)
	const scheme = found && SCHEMES[found[1].toLowerCase()]
	if (!scheme) {
		throw invalid('the URL of the servers does not begin with http:// or https://')
	}
	const rest = found[3].replace(/\/$/, '')
	if (rest.includes('://')) {
		throw invalid('the URL of several servers has one scheme, as in http://h1:8080,h2:8080')
	}
	const servers = rest.split(',').map(host => check(`${scheme}://${host}`))
	return { servers, token: found[2] === undefined ? undefined : decode(found[2]) }
}

function decode(token) {
	try {
		const text = decodeURIComponent(token)
		if (!text.includes(':')) {
			return text
		}
	} catch {
		// the same answer
	}
	throw invalid('malformed token before the @ in the URL of the servers')
}

function check(server) {
	let url
	try {
		url = new URL(server)
	} catch {
		// the same answer
	}
	if (!url?.hostname || url.pathname !== '/' || url.search || url.hash || /\/$/.test(server.slice(8))) {
		throw invalid('a server is http://host:port or https://host:port')
	}
	return server
}

module.exports = { parseServers }
