/** Creates a certificate authority and a certificate for 127.0.0.1, as PEM files. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

export interface CertificateFiles {
  /** PEM of the authority. */
  readonly authority: string
  readonly authorityFile: string
  readonly certificateFile: string
  readonly keyFile: string
}

export function writeCertificate(folder: string): CertificateFiles {
  const authority = createAuthority({ commonName: 'identity providers' }, { clock: realClock, random: secureRandom })
  const names = { dns: ['localhost'], ips: ['127.0.0.1'] }
  const issued = authority.issue({ commonName: 'localhost', names, purpose: 'server' })
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  return {
    authority: authority.certificatePem,
    authorityFile: file('ca.crt', authority.certificatePem),
    certificateFile: file('server.crt', issued.certificatePem),
    keyFile: file('server.key', issued.keyPem),
  }
}
