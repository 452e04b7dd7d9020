package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"testing"
	"time"
)

// An Authority signs certificates for a test. The servers of the lab have no
// TLS port of their own, see [TLSProxy].
type Authority struct {
	// PEM is the authority's own certificate.
	PEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody else knows.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{cert: unsigned("lab authority")}
	a.cert.IsCA, a.cert.BasicConstraintsValid, a.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	a.PEM, a.key = sign(t, a.cert, a.cert, nil)
	return a
}

// Issue signs a certificate for a host's name or address and gives it and its
// key in PEM. It is valid for an hour, or was until an hour ago.
func (a *Authority) Issue(t testing.TB, host string, expired bool) (cert, key []byte) {
	t.Helper()
	c := unsigned(host)
	if ip := net.ParseIP(host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{host}
	}
	if expired {
		c.NotBefore, c.NotAfter = c.NotBefore.Add(-2*time.Hour), c.NotAfter.Add(-2*time.Hour)
	}
	cert, k := sign(t, c, a.cert, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func unsigned(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// sign makes a key and its certificate, by itself if there is no signer's key.
func sign(t testing.TB, c, signer *x509.Certificate, signerKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signerKey == nil {
		signerKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer, &key.PublicKey, signerKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// TLSProxy starts a proxy that speaks TLS to its clients and plain TCP to
// upstream (host:port), on a free loopback port, and gives its host:port. It
// shows the certificate; with clients, it wants one that they have signed. It
// ends with the test.
func TLSProxy(t testing.TB, upstream string, cert, key []byte, clients *Authority) string {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(clients.PEM)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client, upstream)
		}
	}()
	return l.Addr().String()
}

// relay copies both ways until either side ends.
func relay(client net.Conn, upstream string) {
	defer client.Close()
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
