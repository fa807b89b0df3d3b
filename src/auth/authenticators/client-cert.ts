/** Authenticates client certificates: the common name is the user, organizations are groups. */
import { hash } from 'node:crypto'

import type { Certificate } from '#lib/x509/certificate.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { CredentialError, type RequestAuthenticator } from '../authenticator.ts'
import { createPeerVerifier, type PeerVerifierOptions } from '../credentials/peer-certificate.ts'
import { EXTRA } from '../credentials/service-account-name.ts'
import type { User } from '../user.ts'

/** The subject attribute for the user's uid, assigned by Kubernetes. */
const UID_ATTRIBUTE = '1.3.6.1.4.1.57683.2'

export interface ClientCertOptions extends PeerVerifierOptions {
  /** True if a certificate may set the user's uid; true by default. */
  readonly readsUid?: boolean
  readonly metrics?: ServerMeters | undefined
}

export function createClientCertAuthenticator(options: ClientCertOptions): RequestAuthenticator {
  const { clock, metrics = createServerMeters() } = options
  const verify = createPeerVerifier(options)
  const expiration = metrics.family('apiserver_client_certificate_expiration_seconds').labels()
  const users = new WeakMap<Certificate, User>()
  return ({ peer }) => {
    const certificate = verify(peer)
    if (certificate === undefined || certificate.subject.commonName === '') return undefined
    expiration.observe((certificate.notAfterMs - clock.now()) / 1000)
    const known = users.get(certificate)
    if (known !== undefined) return known
    const user = userOf(certificate, options.readsUid ?? true)
    users.set(certificate, user)
    return user
  }
}

function userOf(certificate: Certificate, readsUid: boolean): User {
  const { commonName, organizations } = certificate.subject
  return {
    name: commonName,
    uid: readsUid ? uidOf(certificate) : '',
    groups: [...organizations, 'system:authenticated'].filter((group, at, all) => all.indexOf(group) === at),
    extra: { [EXTRA.credentialId]: [`X509SHA256=${hash('sha256', certificate.der, 'hex')}`] },
  }
}

function uidOf({ subject }: Certificate): string {
  const uids = subject.attributes.filter(({ oid }) => oid === UID_ATTRIBUTE).map(({ value }) => value)
  if (uids.length > 1) throw new CredentialError(`expected 1 UID, but found multiple: [${uids.join(' ')}]`)
  if (uids[0] === '') throw new CredentialError('UID cannot be an empty string')
  return uids[0] ?? ''
}
