const Redis = require("ioredis");
const assert = require("node:assert");

async function main() {
	const [host, port] = process.env.LEAF_RESP.split(/:(?=\d+$)/);
	const redis = new Redis({ host, port: Number(port), connectionName: "test" });
	const seen = new Set();
	const take = (id) => {
		assert(!seen.has(String(id)), `${id} twice`);
		seen.add(String(id));
	};
	for (let i = 0; i < 100; i++) take(await redis.incr("order"));
	const pipeline = redis.pipeline();
	for (let i = 0; i < 5000; i++) pipeline.incr("order");
	for (const [err, id] of await pipeline.exec()) {
		assert.ifError(err);
		take(id);
	}
	await Promise.all(Array.from({ length: 100 }, async () => take(await redis.incr("order"))));
	const last = await redis.incrby("order", 10);
	for (let id = last - 9; id <= last; id++) take(id);
	assert.strictEqual(seen.size, 5210);

	const ids = await redis.call("LEAF.NEXT", "snowflake", "any", "COUNT", 1000);
	assert.strictEqual(new Set(ids).size, 1000);
	assert(ids.every((id) => typeof id === "string" && /^\d{15,19}$/.test(id)), "IDs are texts");
	assert.strictEqual(await redis.setnx("order", 0), 0);
	await assert.rejects(redis.incr("nothing"), /unknown tag/);
	await assert.rejects(redis.get("order"), /INCR takes the next ID/);
	await redis.quit();
	console.log(`ioredis: ${seen.size} IDs, all distinct`);
}

main().catch((err) => {
	console.error(err);
	process.exit(1);
});
