// Worker IDs of servers and pools, a map of them, and the life of the layouts.
import { admin } from './api.js'
import { render, state, watch } from './app.js'
import { ago, card, dot, duration, el, moment, number, seconds, table } from './dom.js'
import { ask, field, whole } from './forms.js'
import { t } from './i18n.js'

const MAP = 1024 // worker IDs in a map

// kind tells the state of a worker ID.
export const kind = w => (w.mine ? 'mine' : w.held ? (w.horizon && new Date(w.horizon) < new Date() ? 'expired' : 'held') : 'free')

// holder shows the first words of an owner's name; a server adds its version and configuration.
const holder = owner => el('span', { title: owner ?? '' }, (owner ?? '–').replace(/ leaf \S+ config \S+( health \S+)?/, ''))

export function workers(pool) {
	watch([])
	let list = [], pools = [], lease = null, starts = null, error = null
	const load = async () => {
		try {
			const [res, all, status] = await Promise.all([admin('ListWorkers', { pool }), admin('ListPools').catch(() => ({})), admin('Status', { skipTags: true })])
			list = res.workers ?? []; starts = res.starts; pools = all.pools ?? []; lease = status.lease; error = null
		} catch (e) { error = e }
		show()
	}
	const free = w => ask(t('freeAction'), [], () => t('freePreview', { id: w.worker, holder: w.owner }), async () => { await admin('FreeWorker', { worker: w.worker }); return t('freed') }, { danger: true, done: load })
	const show = () => {
		const layouts = lease?.layouts ?? [], chosen = pools.find(p => p.name === pool)
		const bits = chosen ? chosen.layout.workerBits : Math.min(...layouts.map(l => l.workerBits ?? 0))
		render(el('h1', {}, t('workers')),
			el('div', { class: 'row' }, el('span', { class: 'soft' }, t('poolOf')), el('a', { href: '#/workers', 'aria-current': pool ? null : 'true' }, t('servers')), pools.map(p => el('a', { href: `#/workers/${encodeURIComponent(p.name)}`, 'aria-current': p.name === pool ? 'true' : null }, t('pool', { name: p.name }))), el('button', { click: load }, t('refresh')), state.me.admin && !starts ? el('button', { id: 'create-pool', click: () => createPool(load) }, t('createPool')) : null),
			error ? el('p', { class: 'error', role: 'alert' }, t('failed', { text: error.message })) : null,
			starts ? el('p', {}, t('starts', { used: number(starts.used ?? '0'), left: number(starts.left ?? '0') })) : null,
			list.length || isFinite(bits) ? map(list, 2 ** Math.min(isFinite(bits) ? bits : 0, 30)) : null,
			table(t('workers'), [[t('worker')], [t('state'), true], [t('holder'), true], [t('until')], [t('seen')], [t('offset')], [t('term')], [t('action')]],
				list.map(w => [w.worker ?? '0', dot(kind(w) === 'expired' ? 'bad' : w.held ? 'good' : 'idle', t(kind(w))), holder(w.owner), moment(w.horizon), ago(w.seen), w.clockOffset ? duration(seconds(w.clockOffset)) : '–', number(w.term ?? '0'),
					w.held && !w.mine && !pool && state.me.admin ? el('button', { class: 'danger', click: () => free(w), 'aria-label': `${t('freeAction')} ${w.worker}` }, t('freeAction')) : ''])),
			el('h2', {}, t('layouts')), table(t('layouts'), [[t('layout'), true], [t('bits')], [t('tick')], [t('ends')], [t('left')]],
				[...layouts.map(l => [l.name, l]), ...pools.map(p => [t('pool', { name: p.name }), { ...p.layout, last: end(p.layout) }])].map(([name, l]) => [name, `${l.timeBits} / ${l.workerBits ?? 0} / ${l.sequenceBits ?? 0}`, duration(seconds(l.tick)), moment(l.last), duration((new Date(l.last) - Date.now()) / 1000)])))
	}
	show()
	load()
	let turn = 0
	return () => { if (++turn % 15 === 0 && !document.querySelector('dialog')) load() }
}

// createPool asks for a pool whose programs use the layout of most snowflake libraries, or another.
function createPool(done) {
	const read = v => {
		if (!v.name) throw new Error(t('noName'))
		const epoch = new Date(v.epoch)
		if (isNaN(epoch)) throw new Error(t('noTime'))
		const bits = { workerBits: Number(whole(v.worker, 1, 22)), sequenceBits: Number(whole(v.sequence, 1, 22)) }
		return { name: v.name, maxTtl: `${whole(v.ttl, 1, 86400)}s`, layout: { epoch: epoch.toISOString(), tick: `${Number(whole(v.tick, 1, 60000)) / 1000}s`, timeBits: 63 - bits.workerBits - bits.sequenceBits, ...bits } }
	}
	const digits = (name, label, value) => field(name, label, { value, inputmode: 'numeric' })
	ask(t('createPool'), [field('name', t('name'), { maxlength: 128 }), field('epoch', t('epoch'), { value: '2026-01-01T00:00:00Z' }), digits('tick', t('tickMillis'), '1'), digits('worker', t('workerBits'), '10'), digits('sequence', t('sequenceBits'), '12'), digits('ttl', t('ttl'), '600')],
		v => { const { name, layout } = read(v); return t('createPoolPreview', { name, n: number(2 ** layout.workerBits), end: end(layout).slice(0, 10) }) },
		async v => { const { pool } = await admin('CreatePool', { pool: read(v) }); return t('poolCreated', { name: pool.name }) }, { done })
}

const end = l => new Date(Math.min(new Date(l.epoch).getTime() + 2 ** l.timeBits * seconds(l.tick) * 1000, 8.64e15)).toISOString()

function map(list, all) {
	const shown = Math.min(all, MAP), columns = 64, size = 720 / columns
	const byID = new Map(list.map(w => [Number(w.worker ?? 0), w]))
	const cells = [...Array(shown).keys()].map(id => {
		const w = byID.get(id), k = w ? kind(w) : 'none'
		return el('rect', { x: (id % columns) * size + .5, y: Math.floor(id / columns) * size + .5, width: size - 1.5, height: size - 1.5, rx: 2, class: { mine: 'f0', held: 'f1', expired: 'f2' }[k] ?? 'fx' }, w ? el('title', {}, `${id}: ${t(k)} ${w.owner ?? ''}`) : null)
	})
	const title = t('mapTitle', { held: number(list.filter(w => w.held).length), all: number(all) })
	return [el('h2', {}, title), el('div', { class: 'chart' }, el('svg', { viewBox: `0 0 720 ${Math.ceil(shown / columns) * size}`, role: 'img', 'aria-label': title }, cells))]
}
