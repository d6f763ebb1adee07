package io.github.leafid.spring;

import io.github.leafid.LeafClient;
import io.github.leafid.LeafSnowflake;
import io.github.leafid.ServersBuilder;
import java.nio.file.Path;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** The properties {@code leaf.*}. */
@ConfigurationProperties("leaf")
public class LeafProperties {
    /** URL of the servers, such as http://h1:8080,h2:8080. */
    private String servers;
    /** Token for the servers. */
    private String token;
    /** File with the token, which may be replaced at any time. */
    private Path tokenFile;
    /** Pool of worker IDs, to make snowflake IDs in this process. */
    private String pool;
    /** Tag whose IDs MyBatis-Plus, Hibernate and ShardingSphere use, if there is no pool. */
    private String tag;
    /** How long a lease of a worker ID lasts; the default is that of the servers. */
    private Duration ttl;
    /** Name of this process in the list of leases; the default is the name of the host. */
    private String holder;
    /** How long the start waits for a free worker ID. */
    private Duration startWait = Duration.ofSeconds(10);
    /** Time whose use the stock of a tag covers. */
    private Duration outageBudget = Duration.ofMinutes(10);
    /** The most IDs of a tag in memory. */
    private long maxStock = 10_000_000;
    /** How long a call waits for a server when the stock is used up. */
    private Duration wait = Duration.ofSeconds(1);
    /** Bound of each call to a server. */
    private Duration callTimeout = Duration.ofSeconds(5);
    /** Time after which a second server is asked; 0 means never. */
    private Duration hedge = Duration.ofMillis(100);

    /** Makes the properties, as Spring does. */
    public LeafProperties() {}

    LeafClient.Builder client(SSLContext ssl) {
        return connect(LeafClient.builder(servers), ssl).outageBudget(outageBudget).maxStock(maxStock).wait(wait);
    }

    LeafSnowflake.Builder snowflake(SSLContext ssl) {
        LeafSnowflake.Builder b = connect(LeafSnowflake.builder(servers, pool), ssl).startWait(startWait).wait(wait);
        if (ttl != null) {
            b.ttl(ttl);
        }
        if (holder != null) {
            b.holder(holder);
        }
        return b;
    }

    private <B extends ServersBuilder<B>> B connect(B b, SSLContext ssl) {
        b.callTimeout(callTimeout).hedge(hedge);
        if (token != null) {
            b.token(token);
        }
        if (tokenFile != null) {
            b.tokenFile(tokenFile);
        }
        return ssl == null ? b : b.ssl(ssl);
    }

    /**
     * URL of the servers, such as http://h1:8080,h2:8080.
     *
     * @return the value
     */
    public String getServers() {
        return servers;
    }

    /**
     * URL of the servers, such as http://h1:8080,h2:8080.
     *
     * @param servers the value
     */
    public void setServers(String servers) {
        this.servers = servers;
    }

    /**
     * Token for the servers.
     *
     * @return the value
     */
    public String getToken() {
        return token;
    }

    /**
     * Token for the servers.
     *
     * @param token the value
     */
    public void setToken(String token) {
        this.token = token;
    }

    /**
     * File with the token, which may be replaced at any time.
     *
     * @return the value
     */
    public Path getTokenFile() {
        return tokenFile;
    }

    /**
     * File with the token, which may be replaced at any time.
     *
     * @param tokenFile the value
     */
    public void setTokenFile(Path tokenFile) {
        this.tokenFile = tokenFile;
    }

    /**
     * Pool of worker IDs, to make snowflake IDs in this process.
     *
     * @return the value
     */
    public String getPool() {
        return pool;
    }

    /**
     * Pool of worker IDs, to make snowflake IDs in this process.
     *
     * @param pool the value
     */
    public void setPool(String pool) {
        this.pool = pool;
    }

    /**
     * Tag whose IDs MyBatis-Plus, Hibernate and ShardingSphere use, if there is no pool.
     *
     * @return the value
     */
    public String getTag() {
        return tag;
    }

    /**
     * Tag whose IDs MyBatis-Plus, Hibernate and ShardingSphere use, if there is no pool.
     *
     * @param tag the value
     */
    public void setTag(String tag) {
        this.tag = tag;
    }

    /**
     * How long a lease of a worker ID lasts; the default is that of the servers.
     *
     * @return the value
     */
    public Duration getTtl() {
        return ttl;
    }

    /**
     * How long a lease of a worker ID lasts; the default is that of the servers.
     *
     * @param ttl the value
     */
    public void setTtl(Duration ttl) {
        this.ttl = ttl;
    }

    /**
     * Name of this process in the list of leases; the default is the name of the host.
     *
     * @return the value
     */
    public String getHolder() {
        return holder;
    }

    /**
     * Name of this process in the list of leases; the default is the name of the host.
     *
     * @param holder the value
     */
    public void setHolder(String holder) {
        this.holder = holder;
    }

    /**
     * How long the start waits for a free worker ID.
     *
     * @return the value
     */
    public Duration getStartWait() {
        return startWait;
    }

    /**
     * How long the start waits for a free worker ID.
     *
     * @param startWait the value
     */
    public void setStartWait(Duration startWait) {
        this.startWait = startWait;
    }

    /**
     * Time whose use the stock of a tag covers.
     *
     * @return the value
     */
    public Duration getOutageBudget() {
        return outageBudget;
    }

    /**
     * Time whose use the stock of a tag covers.
     *
     * @param outageBudget the value
     */
    public void setOutageBudget(Duration outageBudget) {
        this.outageBudget = outageBudget;
    }

    /**
     * The most IDs of a tag in memory.
     *
     * @return the value
     */
    public long getMaxStock() {
        return maxStock;
    }

    /**
     * The most IDs of a tag in memory.
     *
     * @param maxStock the value
     */
    public void setMaxStock(long maxStock) {
        this.maxStock = maxStock;
    }

    /**
     * How long a call waits for a server when the stock is used up.
     *
     * @return the value
     */
    public Duration getWait() {
        return wait;
    }

    /**
     * How long a call waits for a server when the stock is used up.
     *
     * @param wait the value
     */
    public void setWait(Duration wait) {
        this.wait = wait;
    }

    /**
     * Bound of each call to a server.
     *
     * @return the value
     */
    public Duration getCallTimeout() {
        return callTimeout;
    }

    /**
     * Bound of each call to a server.
     *
     * @param callTimeout the value
     */
    public void setCallTimeout(Duration callTimeout) {
        this.callTimeout = callTimeout;
    }

    /**
     * Time after which a second server is asked; 0 means never.
     *
     * @return the value
     */
    public Duration getHedge() {
        return hedge;
    }

    /**
     * Time after which a second server is asked; 0 means never.
     *
     * @param hedge the value
     */
    public void setHedge(Duration hedge) {
        this.hedge = hedge;
    }
}
