package io.github.leafid.test;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Base64;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A certificate for 127.0.0.1, made by the JDK's keytool. */
public final class Tls {
    public final Path certificate;
    public final Path key;
    private final KeyStore store;

    public Tls(Path folder) throws Exception {
        Path file = folder.resolve("server.p12");
        String keytool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
        Process p = new ProcessBuilder(keytool, "-genkeypair", "-keyalg", "EC", "-dname", "CN=leaf", "-ext", "SAN=IP:127.0.0.1", "-alias", "leaf",
                "-keystore", file.toString(), "-storetype", "PKCS12", "-storepass", "changeit").redirectErrorStream(true).start();
        String out = new String(p.getInputStream().readAllBytes());
        if (p.waitFor() != 0) {
            throw new IllegalStateException(out);
        }
        store = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(file)) {
            store.load(in, "changeit".toCharArray());
        }
        certificate = pem(folder.resolve("cert.pem"), "CERTIFICATE", store.getCertificate("leaf").getEncoded());
        key = pem(folder.resolve("key.pem"), "PRIVATE KEY", store.getKey("leaf", "changeit".toCharArray()).getEncoded());
    }

    private static Path pem(Path file, String type, byte[] der) throws Exception {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
        return Files.writeString(file, "-----BEGIN " + type + "-----\n" + text + "\n-----END " + type + "-----\n");
    }

    /** A context that trusts this certificate alone. */
    public SSLContext context() throws Exception {
        return trusting(certificate);
    }

    /** A context that trusts the certificate in a file alone. */
    public static SSLContext trusting(Path file) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (InputStream in = Files.newInputStream(file)) {
            trusted.setCertificateEntry("leaf", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }
}
