import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;

public class Ids {
	public static void main(String[] args) {
		HostAndPort server = HostAndPort.from(System.getenv("LEAF_RESP"));
		for (RedisProtocol protocol : RedisProtocol.values()) {
			var config = DefaultJedisClientConfig.builder().protocol(protocol).clientName("test").build();
			Set<Long> ids = new HashSet<>();
			try (Jedis jedis = new Jedis(server, config)) {
				for (int i = 0; i < 100; i++) {
					ids.add(jedis.incr("order"));
				}
				Pipeline pipeline = jedis.pipelined();
				List<Response<Long>> replies = new ArrayList<>();
				for (int i = 0; i < 5000; i++) {
					replies.add(pipeline.incr("order"));
				}
				pipeline.sync();
				replies.forEach(r -> ids.add(r.get()));
				long last = jedis.incrBy("order", 10);
				for (long id = last - 9; id <= last; id++) {
					ids.add(id);
				}
				check(jedis.setnx("order", "0") == 0, "SETNX");
				check(jedis.ping().equals("PONG"), "PING");
				refused(() -> jedis.incr("nothing"));
				refused(() -> jedis.get("order"));
			}
			try (JedisPooled pool = new JedisPooled(server, config)) {
				for (int i = 0; i < 100; i++) {
					ids.add(pool.incr("order"));
				}
			}
			check(ids.size() == 5210, ids.size() + " distinct IDs");
			System.out.println("Jedis, " + protocol + ": " + ids.size() + " IDs, all distinct");
		}
	}

	static void refused(Runnable command) {
		try {
			command.run();
		} catch (JedisDataException e) {
			return;
		}
		throw new AssertionError("not refused");
	}

	static void check(boolean ok, String what) {
		if (!ok) {
			throw new AssertionError(what);
		}
	}
}
