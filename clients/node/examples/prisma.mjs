// IDs from Leaf as primary keys of Prisma: npm install leaf-id prisma @prisma/client @prisma/adapter-libsql
// The model in schema.prisma says "id BigInt @id", without a default. Run "prisma generate" first.
import { PrismaLibSql } from '@prisma/adapter-libsql'
import { PrismaClient } from '@prisma/client'
import { LeafClient } from 'leaf-id'

const leaf = new LeafClient(process.env.LEAF_URL ?? 'http://127.0.0.1:8080')

/** Gives an ID to each new order that has none. */
const withId = async data => ({ ...data, id: data.id ?? await leaf.next('order') })

const db = new PrismaClient({ adapter: new PrismaLibSql({ url: process.env.DATABASE_URL ?? 'file:orders.db' }) }).$extends({
	query: {
		order: {
			create: async ({ args, query }) => query({ ...args, data: await withId(args.data) }),
			createMany: async ({ args, query }) => query({ ...args, data: await Promise.all([args.data].flat().map(withId)) }),
			upsert: async ({ args, query }) => query({ ...args, create: await withId(args.create) }),
		},
	},
})

await db.$executeRaw`CREATE TABLE IF NOT EXISTS "Order" (id BIGINT PRIMARY KEY, item TEXT NOT NULL)` // instead of a migration
await db.order.create({ data: { item: 'tea' } })
await db.order.createMany({ data: [{ item: 'cups' }, { item: 'sugar' }] })
console.log(await db.order.findMany())
await db.$disconnect()
await leaf.close()
