package io.github.leafid.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import io.github.leafid.IdGenerator;
import io.github.leafid.IdGenerators;
import io.github.leafid.LeafClient;
import io.github.leafid.LeafException;
import io.github.leafid.LeafSnowflake;
import io.github.leafid.mybatisplus.LeafIdentifierGenerator;
import io.github.leafid.test.LeafServer;
import org.apache.ibatis.annotations.Mapper;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.mybatis.spring.annotation.MapperScan;

class LeafAutoConfigurationTest {
    private static LeafServer server;

    public static class Orders {
        public Long id;
        public String item;
    }

    @Mapper
    public interface OrdersMapper extends BaseMapper<Orders> {}

    @Configuration
    @EnableAutoConfiguration
    @MapperScan(basePackageClasses = OrdersMapper.class, annotationClass = Mapper.class)
    static class Application {}

    @Configuration
    @EnableAutoConfiguration
    static class OwnGenerator {
        @Bean
        IdGenerator own() {
            return () -> 42;
        }
    }

    @BeforeAll
    static void start() throws Exception {
        server = LeafServer.start();
        server.pool("orders", 10, "1m");
        server.tag("order", 100);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static ConfigurableApplicationContext run(Class<?> application, String... properties) throws Exception {
        String schema = "create table if not exists orders (id bigint primary key, item varchar(20))";
        SpringApplication app = new SpringApplicationBuilder(application).bannerMode(org.springframework.boot.Banner.Mode.OFF).logStartupInfo(false)
                .properties("spring.datasource.url=jdbc:h2:mem:boot;DB_CLOSE_DELAY=-1;INIT=" + schema).properties(properties).build();
        return app.run();
    }

    @Test
    void leasedWorkerIds() throws Exception {
        LeafSnowflake ids;
        try (ConfigurableApplicationContext c = run(Application.class, "leaf.servers=" + server.url(), "leaf.pool=orders", "leaf.ttl=60s", "leaf.holder=web-1",
                "leaf.tag=order")) {
            ids = c.getBean(LeafSnowflake.class);
            Orders o = new Orders();
            c.getBean(OrdersMapper.class).insert(o);
            assertEquals(ids.lease().worker(), ids.layout().worker(o.id));
            assertTrue(server.leaf("worker", "list", "--pool", "orders").contains("web-1"));
            assertEquals(ids.lease().worker(), ids.layout().worker(IdGenerators.named(IdGenerators.DEFAULT).next()));
            assertTrue(c.getBean(LeafClient.class).next("order") > 0);
        }
        assertEquals(LeafException.CLOSED, assertThrows(LeafException.class, ids::next).reason());
        assertFalse(ids.lease().isValid());
        assertThrows(LeafException.class, () -> IdGenerators.named(IdGenerators.DEFAULT).next());
    }

    @Test
    void idsOfATag() throws Exception {
        try (ConfigurableApplicationContext c = run(Application.class, "leaf.servers=" + server.url(), "leaf.tag=order", "leaf.outage-budget=5m", "leaf.max-stock=1000",
                "leaf.wait=20s")) {
            Orders o = new Orders();
            c.getBean(OrdersMapper.class).insert(o);
            assertTrue(o.id > 0 && o.id < 1_000_000, "ID " + o.id);
            assertTrue(c.getBeansOfType(LeafSnowflake.class).isEmpty());
        }
    }

    @Test
    void beansOfYourOwnWin() throws Exception {
        try (ConfigurableApplicationContext c = run(OwnGenerator.class, "leaf.servers=" + server.url(), "leaf.tag=order", "leaf.pool=orders")) {
            assertEquals(42L, c.getBean(IdentifierGenerator.class).nextId(null));
        }
    }

    @Test
    void nothingWithoutServers() throws Exception {
        try (ConfigurableApplicationContext c = run(Application.class)) {
            assertTrue(c.getBeansOfType(LeafClient.class).isEmpty());
            assertTrue(c.getBeansOfType(LeafIdentifierGenerator.class).isEmpty());
        }
    }
}
