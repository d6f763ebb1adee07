package io.github.leafid.hibernate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.leafid.IdGenerators;
import io.github.leafid.LeafException;
import io.github.leafid.LeafSnowflake;
import io.github.leafid.test.LeafServer;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.annotations.Parameter;
import org.hibernate.cfg.Configuration;
import org.junit.jupiter.api.Test;

class LeafIdGeneratorTest {
    @Entity
    static class Orders {
        @Id
        @GeneratedValue(generator = "leaf")
        @GenericGenerator(name = "leaf", strategy = "io.github.leafid.hibernate.LeafIdGenerator")
        Long id;
    }

    @Entity
    static class Labels {
        @Id
        @GeneratedValue(generator = "labels")
        @GenericGenerator(name = "labels", strategy = "io.github.leafid.hibernate.LeafIdGenerator", parameters = @Parameter(name = "generator", value = "labels"))
        String id;
    }

    private static SessionFactory factory() {
        return new Configuration().addAnnotatedClass(Orders.class).addAnnotatedClass(Labels.class).setProperty("hibernate.connection.url", "jdbc:h2:mem:h6")
                .setProperty("hibernate.hbm2ddl.auto", "create").buildSessionFactory();
    }

    @Test
    void persistedEntitiesHaveIds() throws Exception {
        try (LeafServer server = LeafServer.start()) {
            server.pool("orders", 10, "1m");
            try (LeafSnowflake ids = LeafSnowflake.builder(server.url(), "orders").build(); SessionFactory factory = factory();
                    Session session = factory.openSession()) {
                assertEquals(LeafException.INVALID_ARGUMENT, assertThrows(LeafException.class, () -> session.persist(new Labels())).reason());
                IdGenerators.register(IdGenerators.DEFAULT, ids);
                IdGenerators.register("labels", () -> 7);
                session.beginTransaction();
                Labels label = new Labels();
                session.persist(label);
                assertEquals("7", label.id);
                for (int i = 0; i < 100; i++) {
                    Orders o = new Orders();
                    session.persist(o);
                    assertEquals(ids.lease().worker(), ids.layout().worker(o.id));
                }
                session.getTransaction().commit();
                assertEquals(100L, session.createQuery("select count(o) from LeafIdGeneratorTest$Orders o", Long.class).getSingleResult());
                IdGenerators.unregister(IdGenerators.DEFAULT, ids);
            }
        }
    }
}
