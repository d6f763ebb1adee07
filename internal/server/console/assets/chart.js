// Charts as SVG. Each has its numbers in words for screen readers.
import { el, number } from './dom.js'
import { lang } from './i18n.js'

const W = 720, H = 180, LEFT = 64, BOTTOM = 20, TOP = 8

// lines draws series over time: { name: [[milliseconds, value], …] }.
export function lines(title, series, { show = number, stepped = false, window = 15 * 60_000 } = {}) {
	const names = Object.keys(series).sort()
	const now = Math.max(...names.flatMap(n => series[n].map(p => p[0])), 0) || Date.now()
	const top = Math.max(...names.flatMap(n => series[n].map(p => p[1])), 0) * 1.1 || 1.1
	const x = time => LEFT + (W - LEFT - 8) * Math.max(0, 1 - (now - time) / window)
	const y = value => TOP + (H - TOP - BOTTOM) * (1 - value / top)
	const path = points => points.map(([time, value], i) => `${i ? (stepped ? `H${x(time).toFixed(1)}V` : `L${x(time).toFixed(1)} `) : `M${x(time).toFixed(1)} `}${y(value).toFixed(1)}`).join('')
	const last = names.map(n => `${n}: ${show(series[n].at(-1)?.[1])}`).join('; ')
	const clock = ms => new Date(ms).toLocaleTimeString(lang(), { hour: '2-digit', minute: '2-digit', hour12: false })
	return el('div', { class: 'chart' },
		el('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `${title}. ${last}` },
			[0, .5, 1].map(f => [el('line', { class: 'grid', x1: LEFT, x2: W - 8, y1: y(top * f / 1.1), y2: y(top * f / 1.1) }), el('text', { x: LEFT - 6, y: y(top * f / 1.1) + 4, 'text-anchor': 'end' }, show(top * f / 1.1))]),
			[1, .5, 0].map(f => el('text', { x: x(now - window * f), y: H - 5, 'text-anchor': f === 1 ? 'start' : f ? 'middle' : 'end' }, clock(now - window * f))),
			names.map((n, i) => el('path', { class: `line s${i % 4}`, d: path(series[n]) }))),
		el('div', { class: 'legend', 'aria-hidden': 'true' }, names.map((n, i) => el('span', {}, el('svg', { viewBox: '0 0 10 10' }, el('rect', { width: 10, height: 10, class: `f${i % 4}` })), `${n} ${show(series[n].at(-1)?.[1])}`))))
}

// segments draws the segments in memory: the used part grey, the rest green.
export function segments(title, list) {
	const total = list.reduce((sum, s) => sum + Number(BigInt(s.end) - BigInt(s.start)), 0) || 1
	let at = 0
	const bars = list.map((s, i) => {
		const width = 704 * Number(BigInt(s.end) - BigInt(s.start)) / total
		const used = width * Number(BigInt(s.next) - BigInt(s.start)) / (Number(BigInt(s.end) - BigInt(s.start)) || 1)
		const g = [el('rect', { x: 8 + at, y: 10, width: Math.max(width - 3, 1), height: 30, class: `f${i % 2}`, rx: 3 }), el('rect', { x: 8 + at, y: 10, width: Math.max(Math.min(used, width - 3), 0), height: 30, class: 'fx', rx: 3 })]
		at += width
		return g
	})
	return el('div', { class: 'chart' }, el('svg', { viewBox: '0 0 720 50', role: 'img', 'aria-label': `${title}: ${list.map(s => `${s.start}–${s.end}, ${s.next}`).join('; ') || '–'}` }, bars))
}

// rates turns counts into rates: [[milliseconds, count], …]. A count that falls means a restart.
export function rates(points) {
	const out = []
	for (let i = 1; i < points.length; i++) {
		const [t0, n0] = points[i - 1], [t1, n1] = points[i]
		if (t1 > t0 && n1 >= n0) out.push([t1, (n1 - n0) / (t1 - t0) * 1000])
	}
	return out
}

// lately returns a sample of about so many milliseconds before now, or the one before now if that is
// older; now itself if there is none.
export function lately(samples, now, ms) {
	const older = samples.filter(s => s.time < now.time)
	return older.find(s => s.time >= now.time - ms) ?? older.at(-1) ?? now
}

// quantile estimates a quantile from the numbers of a histogram's buckets, as Prometheus does.
export function quantile(q, counts, bounds) {
	const total = counts.reduce((a, b) => a + b, 0)
	if (!total) return undefined
	let before = 0
	for (let i = 0; i < counts.length; i++) {
		if (before + counts[i] >= q * total && counts[i]) {
			if (i === bounds.length) return bounds[bounds.length - 1]
			const low = i ? bounds[i - 1] : 0
			return low + (bounds[i] - low) * (q * total - before) / counts[i]
		}
		before += counts[i]
	}
	return bounds[bounds.length - 1]
}
