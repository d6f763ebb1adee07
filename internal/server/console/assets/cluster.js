// The servers that the registry of worker IDs knows.
import { admin } from './api.js'
import { render, watch } from './app.js'
import { ago, dot, duration, el, seconds, table } from './dom.js'
import { t } from './i18n.js'

// parse reads the owner of a record, as a server writes it: host:port pid N, leaf VERSION, config
// NAME=DIGEST,…, health ok or the names of its problems.
function parse(owner) {
	const [, address, version, config, health] = /^(\S+ pid \d+)(?: leaf (\S+))?(?: config (\S+))?(?: health (\S+))?/.exec(owner) ?? [null, owner]
	return { address, version, health, config: config ? Object.fromEntries(config.split(',').map(x => x.split('='))) : null }
}

export function cluster() {
	watch([])
	let list = [], error = null
	const load = async () => {
		try { list = (await admin('ListWorkers')).workers ?? []; error = null } catch (e) { error = e }
		show()
	}
	const show = () => {
		const mine = parse(list.find(w => w.mine)?.owner ?? '')
		const differ = other => (!other.config || !mine.config ? t('unknown') : (what => (what.length ? t('differs', { what: what.join(', ') }) : t('same')))(Object.keys({ ...mine.config, ...other.config }).filter(k => mine.config[k] !== other.config[k])))
		const alive = (w, problems) => {
			if (!w.held) return ['idle', t('gone')]
			if (Date.now() - new Date(w.seen) >= 120_000) return ['bad', t('silent')]
			return problems && problems !== 'ok' ? ['bad', problems.split(',').join(', ')] : ['good', t(problems ? 'fine' : 'alive')]
		}
		render(el('h1', {}, t('cluster')), el('p', { class: 'soft' }, t('clusterText')), el('div', { class: 'row' }, el('button', { click: load }, t('refresh'))),
			error ? el('p', { class: 'error', role: 'alert' }, t('failed', { text: error.message })) : null,
			table(t('cluster'), [[t('server'), true], [t('health'), true], [t('worker')], [t('version'), true], [t('configuration'), true], [t('seen')], [t('offset')]],
				list.map(w => { const p = parse(w.owner ?? ''); return [w.mine ? `${p.address} (${t('mine')})` : p.address, dot(...alive(w, p.health)), w.worker ?? '0', p.version ?? t('unknown'), w.mine ? '–' : differ(p), ago(w.seen), w.clockOffset ? duration(seconds(w.clockOffset)) : '–'] })))
	}
	load()
	let turn = 0
	return () => { if (++turn % 15 === 0) load() }
}
