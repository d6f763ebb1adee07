package io.github.leafid.spring;

import io.github.leafid.IdGenerator;
import io.github.leafid.IdGenerators;
import io.github.leafid.LeafClient;
import io.github.leafid.LeafSnowflake;
import javax.net.ssl.SSLContext;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;

/**
 * Configures Leaf where {@code leaf.servers} is set: a {@link LeafClient}; an {@link IdGenerator} with a
 * leased worker ID of {@code leaf.pool}, or else of the tag {@code leaf.tag}; and with it
 * {@link IdGenerators#DEFAULT}, which Hibernate and ShardingSphere use. Beans of your own win. A bean
 * {@link SSLContext} is used for https.
 */
@AutoConfiguration
@ConditionalOnProperty("leaf.servers")
@EnableConfigurationProperties(LeafProperties.class)
public class LeafAutoConfiguration {
    /** Makes the configuration, as Spring does. */
    public LeafAutoConfiguration() {}

    @Bean(destroyMethod = "close")
    @ConditionalOnMissingBean
    LeafClient leafClient(LeafProperties properties, ObjectProvider<SSLContext> ssl) {
        return properties.client(ssl.getIfUnique()).build();
    }

    @Bean(destroyMethod = "close")
    @ConditionalOnMissingBean(IdGenerator.class)
    @ConditionalOnProperty("leaf.pool")
    LeafSnowflake leafSnowflake(LeafProperties properties, ObjectProvider<SSLContext> ssl) {
        return properties.snowflake(ssl.getIfUnique()).build();
    }

    @Bean
    @ConditionalOnMissingBean(IdGenerator.class)
    @ConditionalOnProperty("leaf.tag")
    IdGenerator leafIdGenerator(LeafProperties properties, LeafClient client) {
        return client.tag(properties.getTag());
    }

    @Bean
    @ConditionalOnBean(IdGenerator.class)
    LeafRegistration leafRegistration(IdGenerator ids) {
        return new LeafRegistration(ids);
    }

    /** Has the generator as the default one for as long as the application runs. */
    static final class LeafRegistration implements DisposableBean {
        private final IdGenerator ids;

        LeafRegistration(IdGenerator ids) {
            this.ids = ids;
            IdGenerators.register(IdGenerators.DEFAULT, ids);
        }

        @Override
        public void destroy() {
            IdGenerators.unregister(IdGenerators.DEFAULT, ids);
        }
    }
}
