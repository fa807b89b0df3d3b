/**
 * Starts this replica of the management server among others on one datastore. All serve users and agents, one leads,
 * and requests for a cluster go to the replica with its agent.
 */
import type { ApiClient } from '#client/api-client.ts'
import type { LocalPki } from '#cluster/local-pki.ts'
import { type Clock, every } from '#lib/clock.ts'
import type { CertificateAndKey } from '#lib/http/tls.ts'
import type { Logger } from '#lib/log/log.ts'
import { pick, type Random } from '#lib/random.ts'

import { Clusters } from '../kinds/cluster.ts'
import type { ClusterLink } from '../links/link.ts'
import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { ManagementObjects } from '../objects.ts'
import { issueReplicaCertificates, type ReplicaCertificates, replicaServerName } from './certificates.ts'
import { electLeader, leadAlone, type Leadership } from './leadership.ts'
import { ReplicaLeases } from './leases.ts'
import { Peers } from './peers.ts'

export interface ReplicasOptions {
  readonly client: ApiClient
  readonly pki: LocalPki
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface Replicas {
  /** Of this one, and new at each start. */
  readonly id: string
  readonly leadership: Leadership
  readonly peers: Peers
  /** The certificate that the port shows to other replicas. */
  readonly certificate: () => (CertificateAndKey & { readonly names: readonly string[] }) | undefined
  /** False: this replica has not reached the datastore for a while. */
  isCurrent(): boolean
  /** Whether the replica with this id runs. */
  isAlive(id: string): boolean
  /** Makes this replica known under its address. `onCutOff` is called when it is cut off from the datastore. */
  join(address: string, onCutOff: (isCutOff: boolean) => void): Promise<void>
  leave(): Promise<void>
}

const ID_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const ID_LENGTH = 10

/** A server that has its datastore for itself. */
export function aloneReplica(options: ReplicasOptions): Replicas {
  const id = pick(options.random, ID_ALPHABET, ID_LENGTH)
  const certificates = (): never => {
    throw new Error('A server without replicas connects to none')
  }
  return {
    id,
    leadership: leadAlone(id),
    peers: new Peers({ ...options, ca: '', certificates }),
    certificate: () => undefined,
    isCurrent: () => true,
    isAlive: (other) => other === id,
    join: () => Promise.resolve(),
    leave: () => Promise.resolve(),
  }
}

const DAY_MS = 24 * 3_600_000

/** One of several. `onCertificate` is called when the port has to show another one. */
export function createReplicas(options: ReplicasOptions, onCertificate: () => void): Replicas {
  const { client, pki, clock, random, log } = options
  const id = pick(random, ID_ALPHABET, ID_LENGTH)
  let certificates: ReplicaCertificates = issueReplicaCertificates(pki.ca, id)
  const renewal = every(clock, DAY_MS, () => {
    certificates = issueReplicaCertificates(pki.ca, id)
    onCertificate()
  })
  const peers = new Peers({ ca: pki.ca.certificatePem, certificates: () => certificates, clock, random, log })
  let leases: ReplicaLeases | undefined
  return {
    id,
    leadership: electLeader({ client, random, log, id }),
    peers,
    certificate: () => ({ ...certificates.server, names: [replicaServerName(id)] }),
    isCurrent: () => leases?.isCurrent ?? true,
    isAlive: (other) => other === id || leases?.isAlive(other) === true,
    async join(address, onCutOff) {
      leases = new ReplicaLeases({ client, log, id, address, onLook: (others) => peers.follow(others), onCutOff })
      await leases.start()
      log.info('Joined the other replicas', { id, address })
    },
    async leave() {
      renewal.cancel()
      await leases?.stop()
      await peers.close()
    },
  }
}

/** The link to a cluster: through the agent that connected last, to whichever replica. */
export function linkAcross(
  { id, peers }: Pick<Replicas, 'id' | 'peers'>,
  hub: TunnelHub,
  objects: Pick<ManagementObjects, 'get'>,
): (cluster: string) => ClusterLink | undefined {
  return (cluster) => {
    const own = hub.get(cluster)
    const { replica, disconnectedAt } = objects.get(Clusters, cluster)?.status?.agent ?? {}
    const holder = disconnectedAt === undefined ? replica : undefined
    if (own !== undefined && (holder === undefined || holder === id)) return own
    return peers.link(cluster, holder) ?? own
  }
}
