package io.github.leafid.mybatisplus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.baomidou.mybatisplus.core.MybatisConfiguration;
import com.baomidou.mybatisplus.core.MybatisSqlSessionFactoryBuilder;
import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import com.baomidou.mybatisplus.core.toolkit.GlobalConfigUtils;
import io.github.leafid.LeafClient;
import io.github.leafid.LeafSnowflake;
import io.github.leafid.test.LeafServer;
import java.sql.Connection;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.SqlSession;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;

class LeafIdentifierGeneratorTest {
    static class Orders {
        public Long id;
        public String item;
    }

    static class Labels {
        public String id;
        public String item;
    }

    interface OrdersMapper extends BaseMapper<Orders> {}

    interface LabelsMapper extends BaseMapper<Labels> {}

    private static SqlSessionFactory database(LeafIdentifierGenerator generator) throws Exception {
        JdbcDataSource source = new JdbcDataSource();
        source.setURL("jdbc:h2:mem:mp;DB_CLOSE_DELAY=-1");
        try (Connection c = source.getConnection()) {
            c.createStatement().execute("create table if not exists orders (id bigint primary key, item varchar(20))");
            c.createStatement().execute("create table if not exists labels (id varchar(20) primary key, item varchar(20))");
        }
        MybatisConfiguration config = new MybatisConfiguration(new Environment("test", new JdbcTransactionFactory(), source));
        GlobalConfigUtils.getGlobalConfig(config).setIdentifierGenerator(generator);
        config.addMapper(OrdersMapper.class);
        config.addMapper(LabelsMapper.class);
        return new MybatisSqlSessionFactoryBuilder().build(config);
    }

    private static Orders order(String item) {
        Orders o = new Orders();
        o.item = item;
        return o;
    }

    @Test
    void insertedRowsHaveIds() throws Exception {
        try (LeafServer server = LeafServer.start()) {
            server.pool("orders", 10, "1m");
            server.tag("labels", 100);
            try (LeafSnowflake ids = LeafSnowflake.builder(server.url(), "orders").build();
                    LeafClient client = LeafClient.builder(server.url()).build()) {
                LeafIdentifierGenerator generator = new LeafIdentifierGenerator(entity -> entity instanceof Labels ? client.tag("labels") : ids);
                try (SqlSession session = database(generator).openSession(true)) {
                    OrdersMapper orders = session.getMapper(OrdersMapper.class);
                    for (int i = 0; i < 100; i++) {
                        Orders o = order("tea");
                        orders.insert(o);
                        assertEquals(ids.lease().worker(), ids.layout().worker(o.id));
                        assertTrue(Math.abs(ids.layout().time(o.id) - ids.lease().now()) < 5000);
                    }
                    assertEquals(100, orders.selectCount(null));
                    Labels label = new Labels();
                    session.getMapper(LabelsMapper.class).insert(label);
                    assertEquals("1", label.id);
                }
            }
        }
    }
}
