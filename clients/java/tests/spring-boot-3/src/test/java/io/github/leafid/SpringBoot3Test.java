package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import io.github.leafid.test.LeafServer;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;
import org.apache.ibatis.annotations.Mapper;
import org.hibernate.annotations.GenericGenerator;
import org.junit.jupiter.api.Test;
import org.mybatis.spring.annotation.MapperScan;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.domain.EntityScan;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** One application with JPA and MyBatis-Plus, in Spring Boot 3. */
class SpringBoot3Test {
    public static class Parcels {
        public Long id;
        public String item;
    }

    @Mapper
    public interface ParcelsMapper extends BaseMapper<Parcels> {}

    @Entity(name = "Orders")
    static class Orders {
        @Id
        @GeneratedValue(generator = "leaf")
        @GenericGenerator(name = "leaf", strategy = "io.github.leafid.hibernate.LeafIdGenerator")
        Long id;
    }

    @Configuration
    @EnableAutoConfiguration
    @EntityScan(basePackageClasses = SpringBoot3Test.class)
    @MapperScan(basePackageClasses = ParcelsMapper.class, annotationClass = Mapper.class)
    static class Application {}

    @Test
    void rowsHaveLeasedIds() throws Exception {
        try (LeafServer server = LeafServer.start()) {
            server.pool("orders", 10, "1m");
            String schema = "create table if not exists parcels (id bigint primary key, item varchar(20))";
            LeafSnowflake ids;
            try (ConfigurableApplicationContext c = new SpringApplicationBuilder(Application.class).bannerMode(org.springframework.boot.Banner.Mode.OFF)
                    .properties("leaf.servers=" + server.url(), "leaf.pool=orders", "spring.jpa.hibernate.ddl-auto=update",
                            "spring.datasource.url=jdbc:h2:mem:boot3;DB_CLOSE_DELAY=-1;INIT=" + schema).run()) {
                ids = c.getBean(LeafSnowflake.class);
                Parcels p = new Parcels();
                c.getBean(ParcelsMapper.class).insert(p);
                assertEquals(ids.lease().worker(), ids.layout().worker(p.id));
                try (EntityManager m = c.getBean(EntityManagerFactory.class).createEntityManager()) {
                    m.getTransaction().begin();
                    Orders o = new Orders();
                    m.persist(o);
                    m.getTransaction().commit();
                    assertEquals(ids.lease().worker(), ids.layout().worker(o.id));
                }
            }
            assertEquals(LeafException.CLOSED, assertThrows(LeafException.class, ids::next).reason());
        }
    }
}
