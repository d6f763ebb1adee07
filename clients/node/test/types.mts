// Compiled, not run: the types of what programs write.
import { LeafClient, LeafError, LeafSnowflake, Layout, WorkerLease, type IdGenerator, type IdRange, type Issued, type TagStats } from 'leaf-id'

const client = new LeafClient('http://h1:8080,h2:8080', { token: 't', tls: { ca: '' }, maxStock: 5, onCall: c => c.server.length })
const generators: IdGenerator[] = [client.tag('order'), client.ordered('segment', 'order'), await LeafSnowflake.open('http://h', 'orders', { ttl: 60_000 })]
const id: bigint = await generators[0].next()
const text: string = await client.nextString('order')
const now: bigint | undefined = client.tryNext('order')
const ranges: IdRange[] = await client.take('order', 5)
const issued: Issued = await client.issue('receipt', { n: 3, period: '2026-11-20' })
const stats: TagStats[] = client.stats()
const lease = await WorkerLease.claim('http://h', 'orders', { onLost: (why: LeafError) => why.reason === 'LEASE_LOST' })
const layout: Layout = lease.layout
// @ts-expect-error an ID is no number
const wrong: number = await client.next('order')
// @ts-expect-error there is no such option
new LeafClient('http://h', { maxStok: 5 })
export { id, issued, layout, now, ranges, stats, text, wrong }
