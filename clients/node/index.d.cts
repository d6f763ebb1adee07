import type { SecureContextOptions } from 'node:tls'

/** What programs branch on: one of these, or another reason of the server. */
export type Reason =
	| 'EXHAUSTED' // the IDs in memory are used up, and no server has delivered in time
	| 'UNKNOWN_TAG'
	| 'INVALID_ARGUMENT'
	| 'CLOSED'
	| 'UNAVAILABLE' // no server has given a usable answer
	| 'FOREIGN_STORE' // a server of another store has answered: its IDs may be in use
	| 'OVERFLOW' // the counter or the layout is at its end, for good
	| 'STRICT_ORDER' // nobody has a stock of the tag: make a call for each ID, by ordered
	| 'PERIODIC' // the numbers of the tag start again with each period: make a call for them, by issue
	| 'MASKED' // the servers hide the numbers of the tag: make a call for each one, by ordered or issue
	| 'UNAUTHENTICATED'
	| 'FORBIDDEN'
	| 'NO_WORKER_ID' // the process holds no lease of a worker ID at present
	| 'LEASE_LOST'
	| 'NO_FREE_WORKER_ID'
	| (string & {})

/** A call failed. */
export class LeafError extends Error {
	readonly name: 'LeafError'
	readonly reason: Reason
	/** The HTTP status of the server's answer, or 0. */
	readonly status: number
}

/** One finished call to a server. */
export interface Call {
	server: string
	/** A name such as Advance or ClaimLease. */
	procedure: string
	/** Milliseconds. */
	took: number
	error?: LeafError
}

export interface ServerOptions {
	/** The token for the servers. It may be in the URL instead, or in a file. */
	token?: string
	/** The file that holds the token. It may be replaced at any time. */
	tokenFile?: string
	/** For https URLs; the default is Node's list of authorities. */
	tls?: SecureContextOptions
	/** Bounds each call to a server, in milliseconds; default 5000. */
	callTimeout?: number
	/** After this many milliseconds a call for IDs also asks a second server; default 100, 0: never. */
	hedge?: number
	/** Observes each finished call to a server, for metrics. An error of it becomes a warning of the process. */
	onCall?: (call: Call) => void
}

export interface ClientOptions extends ServerOptions {
	/** The milliseconds whose use the stock of a tag covers; default 600000. */
	outageBudget?: number
	/** The most IDs of a tag in memory, so the most that a crash may cost; default 10000000. */
	maxStock?: number
	/** How long a call waits for a server when the stock is used up, in milliseconds; default 1000. */
	wait?: number
}

/** Consecutive IDs from start up to, not including, end. */
export interface IdRange {
	start: bigint
	end: bigint
}

/** Numbers of a tag or their texts, and the first day of the period that they belong to; empty: the tag has no periods. */
export interface Issued {
	ranges: IdRange[]
	texts: string[]
	period: string
}

export interface IdGenerator {
	/** Returns the next ID. */
	next(): Promise<bigint>
	/** Returns the next ID in decimal digits. */
	nextString(): Promise<string>
	/** Returns n IDs. */
	nextMany(n: number): Promise<bigint[]>
}

export interface TagGenerator extends IdGenerator {
	/** Returns the next ID if one is in memory. */
	tryNext(): bigint | undefined
	/** Returns the next ID in decimal digits if one is in memory. */
	tryNextString(): string | undefined
	/** Takes n IDs as few ranges. */
	take(n: number): Promise<IdRange[]>
}

export interface TagStats {
	tag: string
	/** IDs in memory. */
	stock: number
	issued: number
	/** IDs received from servers. */
	granted: number
	/** IDs that the servers have taken back. */
	returned: number
	/** Calls for IDs that failed. */
	failures: number
}

/** Takes IDs from servers with one store, and keeps a stock of each tag in memory. */
export class LeafClient {
	/** servers is a URL such as http://h1:8080,h2:8080 or https://TOKEN@h1:8443. */
	constructor(servers: string, options?: ClientOptions)
	next(tag: string): Promise<bigint>
	nextString(tag: string): Promise<string>
	tryNext(tag: string): bigint | undefined
	take(tag: string, n: number): Promise<IdRange[]>
	tag(tag: string): TagGenerator
	/** A generator that makes a call for each ID. key is a tag or the name of a layout. */
	ordered(scheme: 'segment' | 'snowflake' | 'uid' | 'ticket', key?: string): IdGenerator
	/** Makes one call for n numbers (default 1) of a tag, and keeps no stock: for tags whose numbers start
	 * again with each period. period is its first day, such as 2026-11-23; the default is the present one.
	 * form: the texts that the tag's form makes of the numbers, in place of ranges. */
	issue(tag: string, options?: { n?: number; period?: string; form?: boolean }): Promise<Issued>
	stats(): TagStats[]
	/** Gives unused IDs back and ends the connections. Later calls fail. */
	close(): Promise<void>
}

/** The bits of a pool's IDs, from the highest on: time, worker ID, sequence. */
export class Layout {
	constructor(epoch: number, tickMs: number, timeBits: number, workerBits: number, sequenceBits: number)
	/** Unix milliseconds. */
	readonly epoch: number
	readonly tickMs: number
	readonly timeBits: number
	readonly workerBits: number
	readonly sequenceBits: number
	/** Makes an ID. */
	compose(tick: number, worker: number, sequence: number): bigint
	/** Takes an ID apart; time is when its tick begins, in Unix milliseconds. */
	decode(id: bigint | string): { tick: number; worker: number; sequence: number; time: number }
}

export interface LeaseOptions extends ServerOptions {
	/** How long a claim or a renewal lasts, in milliseconds, whole seconds; default 5 minutes. */
	ttl?: number
	/** Names this process, for people; default: the name of the host. */
	holder?: string
	/** Called once when the lease will not be renewed any more. It may be used up to its limit. */
	onLost?: (why: LeafError) => void
}

/** The right of this process to make IDs of one worker ID, for a snowflake library of your own. */
export class WorkerLease {
	static claim(servers: string, pool: string, options?: LeaseOptions): Promise<WorkerLease>
	/** A secret: whoever has it can renew and release. */
	readonly id: string
	readonly pool: string
	readonly worker: number
	readonly layout: Layout
	/** The earliest time that an ID may have, in Unix milliseconds. */
	readonly floor: number
	/** The end of the times that an ID may have. It grows with each renewal. */
	readonly limit: number
	/** The time of the registry's clock, in Unix milliseconds. */
	now(): number
	/** Whether the lease has certainly not ended, by the registry's clock. */
	isValid(): boolean
	/**
	 * Whether an ID with this time may be returned; it remembers the latest time for the release. Call
	 * it after the ID was made and before it is returned.
	 */
	use(time: number): boolean
	/** Ends the use of the lease: use returns false from now on. */
	seal(): void
	/** Seals the lease and gives the worker ID back; an error says that no server has taken it. */
	release(): Promise<void>
	/** As release, without an error: the worker ID is then free at the limit. */
	close(): Promise<void>
}

export interface SnowflakeOptions extends Omit<LeaseOptions, 'onLost'> {
	/** How long a call waits for a lease, or for the clock, in milliseconds; default 1000. */
	wait?: number
	/** How long open tries while no server answers or no worker ID is free; default 10000 ms. */
	startWait?: number
}

/** Makes snowflake IDs in this process, with a worker ID that it leases. */
export class LeafSnowflake implements IdGenerator {
	static open(servers: string, pool: string, options?: SnowflakeOptions): Promise<LeafSnowflake>
	readonly layout: Layout
	/** The present lease, for figures. */
	readonly lease: WorkerLease
	next(): Promise<bigint>
	nextString(): Promise<string>
	nextMany(n: number): Promise<bigint[]>
	/** Returns an ID unless that needs a wait. */
	tryNext(): bigint | undefined
	/** Gives the worker ID back. Later calls fail. */
	close(): Promise<void>
}
