import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { LeafClient } from 'leaf-id'

const [url, file, n, rate] = process.argv.slice(2)
const ids = new LeafClient(url, { wait: 2000 })
const out = fs.openSync(file, 'w')
let lines = []
for (let i = 0; i < n; i++) {
	lines.push(await ids.nextString('order'))
	if (lines.length === 1000 || i === n - 1) {
		fs.writeSync(out, lines.join('\n') + '\n')
		lines = []
		await sleep(Math.max(0, i / rate * 1000 - performance.now()))
	}
}
await ids.close()
