package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// authority is the certificate authority of a cluster.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	last int64 // serial number
}

func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir}
	err := a.write("ca", &x509.Certificate{
		Subject: pkix.Name{CommonName: "tare-test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a, err
}

// issue writes NAME.crt and NAME.key for a user, who may belong to a group, or for a
// server with the given addresses.
func (a *authority) issue(name, user, group string, hosts ...string) error {
	c := &x509.Certificate{
		Subject:     pkix.Name{CommonName: user},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if group != "" {
		c.Subject.Organization = []string{group}
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	return a.write(name, c)
}

// write signs a certificate; the first one is self-signed.
func (a *authority) write(name string, c *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	a.last++
	c.SerialNumber = big.NewInt(a.last)
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if a.key == nil {
		a.cert, a.key = c, key
	}
	signed, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		file, kind string
		content    []byte
	}{{name + ".crt", "CERTIFICATE", signed}, {name + ".key", "EC PRIVATE KEY", private}} {
		text := pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.content})
		if err := os.WriteFile(filepath.Join(a.dir, f.file), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// user creates a certificate and a kubeconfig that uses it, NAME.kubeconfig.
func (c *Cluster) user(name, server, user, group string) error {
	if err := c.ca.issue(name, user, group); err != nil {
		return err
	}
	return c.kubeconfig(name, server, &api.AuthInfo{ClientCertificate: c.at(name + ".crt"), ClientKey: c.at(name + ".key")})
}

func (c *Cluster) kubeconfig(name, server string, user *api.AuthInfo) error {
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: server, CertificateAuthority: c.at("ca.crt")}
	config.AuthInfos[name] = user
	config.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: name}
	config.CurrentContext = "test"
	return clientcmd.WriteToFile(*config, c.at(name+".kubeconfig"))
}
