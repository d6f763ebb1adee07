import leaf from './index.cjs'

export const { LeafClient, LeafError, LeafSnowflake, Layout, WorkerLease } = leaf
