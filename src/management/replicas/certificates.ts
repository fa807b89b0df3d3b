/**
 * Issues two certificates for a replica of the management server: as client of other replicas, and for its HTTPS port
 * under the name of the replica.
 */
import type { KeyPair } from '#cluster/local-pki.ts'
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Authority } from '#lib/x509/authority.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'
import { X509Error } from '#lib/x509/error.ts'

/** The authority signs other clients too, such as the administrator; only replicas have this organization. */
const ORGANIZATION = 'hyperkube:server-replicas'
const COMMON_NAME = 'hyperkube:server-replica:'
const DOMAIN = 'replicas.hyperkube.internal'
const VALID_MS = 30 * 24 * 3_600_000

export interface ReplicaCertificates {
  readonly client: KeyPair
  readonly server: KeyPair
}

/** Certificates of 30 days; issue new ones each day. */
export function issueReplicaCertificates(ca: Authority, id: string): ReplicaCertificates {
  const commonName = `${COMMON_NAME}${id}`
  const client = ca.issue({ commonName, organizations: [ORGANIZATION], purpose: 'client', validityMs: VALID_MS })
  const names = { dns: [replicaServerName(id)] }
  const server = ca.issue({ commonName: replicaServerName(id), names, purpose: 'server', validityMs: VALID_MS })
  return {
    client: { certificate: client.certificatePem, key: client.keyPem },
    server: { certificate: server.certificatePem, key: server.keyPem },
  }
}

/** The name in the server certificate of a replica. No resolver knows it. */
export function replicaServerName(id: string): string {
  return `${id}.${DOMAIN}`
}

/** The id of the replica that made the connection of a request; undefined for all other clients. */
export function replicaOf({ peer }: Pick<Exchange, 'peer'>, ca: Authority, clock: Clock): string | undefined {
  if (!peer.isTrusted) return undefined
  const [leaf] = peer.chain()
  if (leaf === undefined) return undefined
  try {
    const certificate = parseCertificate(leaf)
    verifyChain(certificate, { roots: [ca.certificate], nowMs: clock.now(), usage: 'client auth' })
    const { commonName, organizations } = certificate.subject
    const isReplica = organizations.includes(ORGANIZATION) && commonName.startsWith(COMMON_NAME)
    return isReplica ? commonName.slice(COMMON_NAME.length) : undefined
  } catch (error) {
    if (error instanceof X509Error) return undefined
    throw error
  }
}
