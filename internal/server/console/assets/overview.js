// The overview: health in a sentence, rates, latency, stock, store, lease.
import { admin } from './api.js'
import { state, render, watch } from './app.js'
import { lately, lines, quantile, rates } from './chart.js'
import { card, cards, duration, el, metric, moment, number, table } from './dom.js'
import { t } from './i18n.js'

const schemes = list => (list?.length ? list.join(', ') : t('allSchemes'))

// health is the sentence, from the conditions of Status.
export function health(status, error) {
	if (error) return el('div', { class: 'banner down', role: 'alert' }, t('unreachable', { text: error.message }))
	if (!status) return el('div', { class: 'banner' }, t('connecting'))
	const [first] = status.conditions ?? []
	if (!first) return el('div', { class: 'banner', role: 'status' }, t('well', { schemes: (status.schemes ?? []).filter(s => s.ready).map(s => s.name).join(', ') }))
	return el('div', { class: `banner ${first.down ? 'down' : 'degraded'}`, role: 'alert' },
		t(first.down ? 'down' : 'degraded', { schemes: schemes(first.schemes), text: first.text }),
		first.advice ? el('p', {}, t('todo', { text: first.advice })) : null)
}

// issued returns the history of each scheme: [[milliseconds, IDs since the start], …].
function issued() {
	const series = {}
	const add = (scheme, time, n) => (series[scheme] ??= []).push([time, n])
	const first = state.samples[0]?.time ?? Infinity
	for (const { '': time, ...point } of state.history) if (time < first) for (const [scheme, n] of Object.entries(point)) add(scheme, time, n)
	for (const s of state.samples) {
		const sums = {}
		if (s.values.leaf_segment_ids_issued_total) sums.segment = s.values.leaf_segment_ids_issued_total['']
		for (const [labels, n] of Object.entries(s.values.leaf_layout_ids_issued_total ?? {})) sums[labels.split('|')[0]] = (sums[labels.split('|')[0]] ?? 0) + n
		for (const [scheme, n] of Object.entries(sums)) add(scheme, s.time, n)
	}
	return series
}

const sum = object => Object.values(object ?? {}).reduce((a, b) => a + b, 0)

function perSecond(now, value) {
	const before = lately(state.samples, now, 5000)
	return now.time > before.time ? Math.max(0, (value(now) - value(before)) / (now.time - before.time) * 1000) : undefined
}

function latencies(now) {
	const before = lately(state.samples, now, 60_000), counts = []
	for (const [end, list] of Object.entries(now.latencies.leaf_request_duration_seconds ?? {})) {
		const old = before === now ? [] : before.latencies.leaf_request_duration_seconds?.[end] ?? []
		list.forEach((n, i) => { counts[i] = (counts[i] ?? 0) + n - (old[i] ?? 0) })
	}
	return [.5, .99, .999].map(q => duration(quantile(q, counts, state.me.bounds ?? []))).join(' / ')
}

export function overview() {
	watch([])
	let status = null, asked = 0
	const ask = async () => {
		asked = Date.now()
		try { status = await admin('Status', { skipTags: true }) } catch { /* the stream tells what is wrong */ }
		show(state.samples.at(-1))
	}
	const show = s => {
		const v = s?.values ?? {}
		render(el('h1', {}, t('overview')), health(status, state.link === 'lost' ? state.error : null),
			s ? cards(
				card(t('idsPerSecond'), number(perSecond(s, x => (x.values.leaf_segment_ids_issued_total?.[''] ?? 0) + sum(x.values.leaf_layout_ids_issued_total)))),
				card(t('requestsPerSecond'), number(perSecond(s, x => sum(x.values.leaf_request_duration_seconds_count)))),
				card(t('latency'), latencies(s), t('lastMinute')),
				card(t('stockLasts'), v.leaf_segment_shortest_stock_seconds ? metric(v, 'leaf_segment_shortest_stock_seconds', '', duration) : t('idle'), t('stockNote')),
				card(t('store'), v.leaf_store_up ? metric(v, 'leaf_store_up', '', up => t(up ? 'storeUp' : 'storeDown')) : '–', status?.store?.name),
				card(t('storeCalls'), metric(v, 'leaf_store_call_duration_seconds_count'), [t('errors'), ' ', number(sum(v.leaf_store_call_errors_total))]),
				card(t('lease'), v.leaf_worker_held?.[''] ? metric(v, 'leaf_worker_id') : t('noLease'), v.leaf_worker_horizon_seconds ? t('leaseFor', { time: duration(v.leaf_worker_horizon_seconds['']) }) : null),
				card(t('clock'), metric(v, 'leaf_clock_offset_seconds', '', duration), t('clockNote')),
				card(t('connections'), number(sum(v.leaf_connections)), Object.keys(v.leaf_connections ?? {}).join(', ')),
				card(t('version'), status?.version ?? '–', [t('started'), ' ', moment(status?.started)])) : null,
			el('h2', {}, t('last15')), lines(t('last15'), Object.fromEntries(Object.entries(issued()).map(([k, p]) => [k, rates(p)]))),
			el('h2', {}, t('busiest')), s ? busiest(s) : null,
			status?.conditions?.length ? [el('h2', {}, t('warnings')), el('ul', {}, status.conditions.map(c => el('li', {}, `${c.name} (${schemes(c.schemes)}): ${c.text} ${c.advice ?? ''}`)))] : null)
	}
	ask()
	let conditions = ''
	return s => {
		const now = JSON.stringify(s.values.leaf_condition)
		if (now !== conditions || Date.now() - asked > 10_000) ask()
		conditions = now
		show(s)
	}
}

function busiest(s) {
	const v = s.values
	return table(t('inUse', { n: number(v.leaf_segment_tags?.['']), failing: number(v.leaf_segment_tags_failing?.['']) }),
		[[t('tag'), true], [t('rate')], [t('issued')], [t('stock')], [t('lasts')], [t('step')], [t('storeCalls')], [t('lostIDs')], [t('errors')]],
		s.tags.slice(0, 20).map(tag => [el('a', { href: `#/tag/${encodeURIComponent(tag.name)}` }, tag.name), number(tag.rate),
			...['ids_issued_total', 'stock'].map(m => metric(v, `leaf_tag_${m}`, tag.name)), metric(v, 'leaf_tag_stock_seconds', tag.name, duration),
			...['step', 'store_calls_total', 'ids_lost_total', 'store_errors_total'].map(m => metric(v, `leaf_tag_${m}`, tag.name))]))
}
