'use strict'

const { performance } = require('node:perf_hooks')

const LATE = 20 // milliseconds

/**
 * Calls fire after ms, and returns how to cancel that. A timer that comes late tells that the program was
 * blocked or frozen; answers may have arrived meanwhile, so it waits for as long once more, at most ms.
 */
function patientTimer(ms, fire) {
	let timer
	const arm = (wait, again) => {
		const due = performance.now() + wait
		timer = setTimeout(() => {
			const late = performance.now() - due
			if (again && late > LATE) {
				arm(Math.min(late, ms), false)
			} else {
				fire()
			}
		}, wait)
	}
	arm(ms, true)
	return () => clearTimeout(timer)
}

module.exports = { patientTimer }
