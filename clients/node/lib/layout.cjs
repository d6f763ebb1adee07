'use strict'

const { invalid } = require('./error.cjs')

/** The bits of a pool's IDs, from the highest on: time, worker ID, sequence. */
class Layout {
	#shift
	#sequenceShift

	constructor(epoch, tickMs, timeBits, workerBits, sequenceBits) {
		const bits = [timeBits, workerBits, sequenceBits]
		const whole = [epoch, tickMs, ...bits].every(Number.isSafeInteger)
		if (!whole || tickMs < 1 || timeBits < 1 || workerBits < 0 || sequenceBits < 0 || timeBits + workerBits + sequenceBits > 63) {
			throw invalid(`a layout of ${bits.join(', ')} bits with ticks of ${tickMs} ms from ${epoch}`)
		}
		Object.assign(this, { epoch, tickMs, timeBits, workerBits, sequenceBits })
		this.#shift = BigInt(workerBits + sequenceBits)
		this.#sequenceShift = BigInt(sequenceBits)
		Object.freeze(this)
	}

	compose(tick, worker, sequence) {
		fits('tick', tick, this.timeBits)
		fits('worker ID', worker, this.workerBits)
		fits('sequence', sequence, this.sequenceBits)
		return BigInt(tick) << this.#shift | BigInt(worker) << this.#sequenceShift | BigInt(sequence)
	}

	decode(id) {
		const n = BigInt(id)
		if (n < 0n || n >> BigInt(this.timeBits) + this.#shift > 0n) {
			throw invalid(`${n} has bits beyond the layout`)
		}
		const tick = Number(n >> this.#shift)
		return {
			tick,
			worker: Number(n >> this.#sequenceShift & (1n << BigInt(this.workerBits)) - 1n),
			sequence: Number(n & (1n << this.#sequenceShift) - 1n),
			time: this.epoch + tick * this.tickMs,
		}
	}
}

function fits(name, value, bits) {
	if (!Number.isSafeInteger(value) || value < 0 || value >= 2 ** bits) {
		throw invalid(`${name}: ${value} is not in 0 … 2^${bits} - 1`)
	}
}

/** Reads the layout of a server's answer. */
function readLayout(l) {
	return new Layout(l.epoch, l.tick_ms, l.time_bits, l.worker_bits, l.sequence_bits)
}

module.exports = { Layout, readLayout }
