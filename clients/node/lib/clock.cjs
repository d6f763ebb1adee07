'use strict'

const { performance } = require('node:perf_hooks')

/**
 * The registry's clock, as far as the answers tell it. Between them the monotonic clock counts, so this
 * machine's date does not matter.
 */
class RegistryClock {
	#atReceipt
	#atSending

	/** An answer with the registry's time, to a request sent at a moment of performance.now(). */
	constructor(millis, sent) {
		this.#atReceipt = millis - performance.now()
		this.#atSending = millis - sent
	}

	/** Returns the time that has certainly come. */
	earliest() {
		return Math.floor(this.#atReceipt + performance.now())
	}

	/** Returns the time that has come at most. */
	latest() {
		return Math.floor(this.#atSending + performance.now()) + 1
	}
}

module.exports = { RegistryClock }
