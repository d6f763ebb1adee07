import os

import redis

host, _, port = os.environ["LEAF_RESP"].rpartition(":")
for protocol in (2, 3):
    client = redis.Redis(host=host, port=int(port), protocol=protocol, client_name="test", decode_responses=True)
    ids = [client.incr("order") for _ in range(100)]
    pipeline = client.pipeline(transaction=False)
    for _ in range(5000):
        pipeline.incr("order")
    ids += pipeline.execute()
    last = client.incrby("order", 10)
    ids += range(last - 9, last + 1)
    assert len(set(ids)) == 5110 and ids == sorted(ids), "IDs ascend"

    batch = client.execute_command("LEAF.NEXT", "snowflake", "any", "COUNT", 1000)
    assert len(set(batch)) == 1000 and all(isinstance(i, str) for i in batch), batch[:3]
    assert client.setnx("order", 0) is False
    assert client.set("order", 0, nx=True) is None
    assert client.ping() and client.info("server")["redis_version"]
    for refused in (lambda: client.incr("nothing"), lambda: client.get("order")):
        try:
            refused()
        except redis.ResponseError:
            continue
        raise AssertionError("not refused")
    client.close()
    print(f"redis-py {redis.__version__}, RESP{protocol}: {len(ids)} IDs, all distinct")
