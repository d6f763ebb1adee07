// Servers that answer as a test says.
import http from 'node:http'
import { once } from 'node:events'

/** Has one or more servers answer with what handle returns, for as long as use runs. */
export async function withServers(n, handle, use) {
	const servers = []
	for (let i = 0; i < n; i++) {
		const server = http.createServer(async (request, response) => {
			const { status, body } = await handle(request, i)
			response.writeHead(status, { 'Content-Type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body))
		})
		await once(server.listen(0, '127.0.0.1'), 'listening')
		servers.push(server)
	}
	try {
		await use(`http://${servers.map(s => `127.0.0.1:${s.address().port}`).join(',')}`)
	} finally {
		servers.forEach(s => { s.close(); s.closeAllConnections?.() })
	}
}
