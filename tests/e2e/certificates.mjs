// Certificates for tests of TLS, made by openssl.
import { readFileSync } from 'node:fs';
import { execFileSync, join, writeFileSync } from './lib.mjs';

/** A CA, and certificates of it for a server on 127.0.0.1 and for a client. */
export function certificates(dir) {
  const openssl = (...args) => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', 'ca.key',
    '-out', 'ca.pem', '-subj', '/CN=test ca');
  for (const [name, extension] of [['server', 'subjectAltName=IP:127.0.0.1,DNS:profiles.example\nextendedKeyUsage=serverAuth'],
    ['client', 'extendedKeyUsage=clientAuth']]) {
    writeFileSync(join(dir, `${name}.ext`), extension);
    openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`,
      '-subj', `/CN=${name}`);
    openssl('x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2',
      '-extfile', `${name}.ext`, '-out', `${name}.pem`);
  }
  return (name) => readFileSync(join(dir, name));
}
