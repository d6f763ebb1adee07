// Serves a page, has Chromium show it, and waits for what the page reports.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const server = createServer()
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${server.address().port}`
const page = (await readFile('page.html', 'utf8')).replace('LEAF_URL', process.env.LEAF_URL)
const files = {
	'/': ['text/html; charset=utf-8', page],
	'/grpc-web.js': ['text/javascript', await readFile(`${process.env.LEAF_TMP}/node_modules/grpc-web/index.esm.js`)],
}

const reported = new Promise(resolve => {
	server.on('request', (request, response) => {
		if (request.method !== 'POST') {
			const [type, content] = files[request.url] ?? ['text/plain', '']
			response.setHeader('Content-Type', type)
			response.end(content)
			return
		}
		let text = ''
		request.on('data', data => (text += data))
		request.on('end', () => {
			response.end()
			resolve(text)
		})
	})
})

const browser = spawn('chromium', [
	'--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
	'--no-proxy-server', '--enable-features=NetworkServiceInProcess', '--disable-background-networking', '--disable-component-update', '--disable-sync',
	`--user-data-dir=${process.env.LEAF_TMP}/profile`, `${origin}/`,
], { stdio: ['ignore', 'ignore', 'pipe'] })
let log = ''
browser.stderr.on('data', data => (log += data))
const ended = once(browser, 'exit').then(([code]) => `Chromium ended with ${code}:\n${log}`)
const late = new Promise(resolve => setTimeout(() => resolve(`the page reported nothing:\n${log}`), 600_000).unref())

const result = await Promise.race([reported, ended, late])
browser.kill('SIGKILL')
server.close()
server.closeAllConnections()
console.log(result)
process.exit(result.startsWith('ok: ') ? 0 : 1)
