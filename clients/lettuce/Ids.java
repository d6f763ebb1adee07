import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ValueListOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

public class Ids {
	enum Command implements ProtocolKeyword {
		NEXT;

		public byte[] getBytes() {
			return "LEAF.NEXT".getBytes(StandardCharsets.US_ASCII);
		}
	}

	public static void main(String[] args) throws Exception {
		RedisURI server = RedisURI.create("redis://" + System.getenv("LEAF_RESP"));
		server.setClientName("test");
		for (ProtocolVersion protocol : ProtocolVersion.values()) {
			RedisClient client = RedisClient.create(server);
			client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
			Set<Long> ids = new HashSet<>();
			try (StatefulRedisConnection<String, String> connection = client.connect()) {
				var sync = connection.sync();
				for (int i = 0; i < 100; i++) {
					ids.add(sync.incr("order"));
				}
				List<RedisFuture<Long>> replies = new ArrayList<>();
				for (int i = 0; i < 5000; i++) {
					replies.add(connection.async().incr("order"));
				}
				for (RedisFuture<Long> reply : replies) {
					ids.add(reply.get());
				}
				long last = sync.incrby("order", 10);
				for (long id = last - 9; id <= last; id++) {
					ids.add(id);
				}
				check(!sync.setnx("order", "0"), "SETNX");
				var next = new CommandArgs<>(StringCodec.UTF8).add("snowflake").add("any").add("COUNT").add(1000);
				List<String> texts = sync.dispatch(Command.NEXT, new ValueListOutput<>(StringCodec.UTF8), next);
				check(new HashSet<>(texts).size() == 1000, "LEAF.NEXT");
				refused(() -> sync.incr("nothing"));
				refused(() -> sync.get("order"));
			}
			client.shutdown();
			check(ids.size() == 5110, ids.size() + " distinct IDs");
			System.out.println("Lettuce, " + protocol + ": " + ids.size() + " IDs, all distinct");
		}
		System.exit(0);
	}

	static void refused(Runnable command) {
		try {
			command.run();
		} catch (RedisCommandExecutionException e) {
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
