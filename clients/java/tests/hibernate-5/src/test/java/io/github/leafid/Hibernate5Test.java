package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.leafid.test.LeafServer;
import javax.persistence.Entity;
import javax.persistence.GeneratedValue;
import javax.persistence.Id;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.cfg.Configuration;
import org.junit.jupiter.api.Test;

class Hibernate5Test {
    @Entity(name = "Orders")
    static class Orders {
        @Id
        @GeneratedValue(generator = "leaf")
        @GenericGenerator(name = "leaf", strategy = "io.github.leafid.hibernate.LeafIdGenerator")
        Long id;
    }

    @Test
    void persistedEntitiesHaveIds() throws Exception {
        try (LeafServer server = LeafServer.start()) {
            server.tag("orders", 100);
            Configuration config = new Configuration().addAnnotatedClass(Orders.class).setProperty("hibernate.connection.url", "jdbc:h2:mem:h5")
                    .setProperty("hibernate.dialect", "org.hibernate.dialect.H2Dialect").setProperty("hibernate.hbm2ddl.auto", "create");
            try (LeafClient client = LeafClient.builder(server.url()).build(); SessionFactory factory = config.buildSessionFactory();
                    Session session = factory.openSession()) {
                IdGenerators.register(IdGenerators.DEFAULT, client.tag("orders"));
                session.beginTransaction();
                for (long i = 1; i <= 100; i++) {
                    Orders o = new Orders();
                    session.persist(o);
                    assertEquals(i, o.id);
                }
                session.getTransaction().commit();
                assertEquals(100L, session.createQuery("select count(o) from Orders o", Long.class).getSingleResult());
            }
        }
    }
}
