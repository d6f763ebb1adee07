// One tag: its counter in the store, its stock here, and changes.
import { admin, call, history } from './api.js'
import { render, state, watch } from './app.js'
import { lines, rates, segments } from './chart.js'
import { card, cards, duration, el, metric, moment, number } from './dom.js'
import { ask, field, LARGEST, LARGEST_STEP, optionFields, optionLabel, optionsOf, whole } from './forms.js'
import { t } from './i18n.js'

export function tag(name) {
	watch([name])
	let peek = null, error = null, past = []
	const load = async () => {
		try { [peek, past] = await Promise.all([admin('PeekTag', { name }), history(name)]); error = null } catch (e) { error = e; peek = null }
		show()
	}
	const show = s => {
		s ??= state.samples.at(-1)
		const v = s?.values ?? {}, here = s?.tags.find(x => x.name === name), stored = peek?.tag
		const points = (value, m) => [...past.filter(p => !state.samples.length || p[0] < state.samples[0].time).map(p => [p[0], p[value]]), ...state.samples.filter(x => x.values[m]?.[name] !== undefined).map(x => [x.time, x.values[m][name]])]
		render(el('p', {}, el('a', { href: '#/tags' }, t('back'))), el('h1', {}, name),
			error ? el('p', { class: 'error', role: 'alert' }, t('failed', { text: error.message })) : null,
			stored ? [el('h2', {}, t('inStore')), cards(card(t('maxID'), number(stored.maxId)), card(t('step'), number(stored.step)), card(t('updated'), moment(stored.updated)), card(t('description'), stored.description || '–'), Object.entries(stored.options ?? {}).map(([name, value]) => card(optionLabel(name), value)), stored.options?.mask ? null : card(t('nextID'), number(peek.next ?? '0')))] : null,
			actions(name, stored, load),
			el('h2', {}, t('inMemory')),
			here ? [
				cards(card(t('rate'), number(here.rate)), card(t('issued'), metric(v, 'leaf_tag_ids_issued_total', name)), card(t('stock'), metric(v, 'leaf_tag_stock', name)), card(t('lasts'), metric(v, 'leaf_tag_stock_seconds', name, duration)),
					card(t('storeCalls'), metric(v, 'leaf_tag_store_calls_total', name)), card(t('errors'), metric(v, 'leaf_tag_store_errors_total', name), here.error), card(t('lostIDs'), metric(v, 'leaf_tag_ids_lost_total', name)),
					card(t('waits'), metric(v, 'leaf_tag_waits_total', name)), card(t('exhausted'), metric(v, 'leaf_tag_exhausted_total', name))),
				el('h2', {}, t('segments')), segments(t('segments'), here.segments),
				el('h2', {}, t('last15')), lines(t('last15'), { [name]: rates(points(1, 'leaf_tag_ids_issued_total')) }),
				el('h2', {}, t('stockHistory')), lines(t('stockHistory'), { [name]: points(2, 'leaf_tag_stock') }),
				el('h2', {}, t('stepHistory')), lines(t('stepHistory'), { [name]: points(3, 'leaf_tag_step') }, { stepped: true }),
			] : el('p', { class: 'soft' }, t('notInUse')))
	}
	load()
	let turn = 0
	return s => { if (++turn % 5 === 0 && !document.querySelector('dialog')) load(); else show(s) }
}

function actions(name, stored, done) {
	if (!stored) return null
	const max = BigInt(stored.maxId ?? 0)
	const said = res => t('done', { max: res.tag?.maxId ?? '–', step: res.tag?.step ?? '–' })
	const button = (id, title, open, danger) => el('button', { id, class: danger ? 'danger' : null, disabled: !state.me.admin, title: state.me.admin ? null : t('readOnly'), click: open }, title)
	const changeable = state.me.options.filter(o => !o.fixed)
	const changeStep = () => ask(t('changeStep'), [field('step', t('step'), { value: stored.step, inputmode: 'numeric' }), field('description', t('description'), { value: stored.description ?? '' }), ...optionFields(changeable, stored.options)],
		v => t('stepPreview', { from: stored.step, to: whole(v.step, 1, LARGEST_STEP) }),
		async v => said(await admin('AlterTag', { name, step: whole(v.step, 1, LARGEST_STEP), ...(v.description !== (stored.description ?? '') ? { description: v.description } : {}), options: optionsOf(changeable, v) })), { done })
	const raise = () => ask(t('raise'), [field('by', t('raiseBy'), { inputmode: 'numeric' })],
		v => t('raisePreview', { from: max, to: max + BigInt(whole(v.by, 1, LARGEST)) }),
		async v => said(await admin('AlterTag', { name, raiseBy: whole(v.by, 1, LARGEST) })), { done })
	const observe = () => ask(t('observe'), [field('max', t('observeMax'), { inputmode: 'numeric' })],
		v => t('observePreview', { max: whole(v.max, 0, LARGEST) }),
		async v => { const r = await admin('ObserveTag', { name, max: whole(v.max, 0, LARGEST) }); return `${t('observed', { dropped: r.dropped ?? '0' })} ${r.othersBelow ? t('othersBelow', { id: r.othersBelow }) : ''}` }, { done })
	const remove = () => ask(t('remove'), [field('name', t('typeName'))],
		v => { if (v.name !== name) throw new Error(t('wrongName')); return t('deletePreview', { name, max }) },
		async () => { await admin('DeleteTag', { name }); return t('deleted') }, { danger: true, done })
	const take = () => ask(t('takeOne'), [], () => t('takePreview', { name }),
		async () => t('taken', { id: (await call('LeafService', 'Next', { key: name })).id }), { done })
	return [el('div', { class: 'row' }, button('change-step', t('changeStep'), changeStep), button('raise', t('raise'), raise), button('observe', t('observe'), observe), el('button', { id: 'take', click: take }, t('takeOne')), button('delete', t('remove'), remove, true)),
		state.me.admin ? null : el('p', { class: 'soft' }, t('readOnly'))]
}
