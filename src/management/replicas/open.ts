/**
 * Prepares the start of a replica: shares its keys through the datastore and computes its address. Only etcd allows
 * several replicas of the management server.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { EVERYWHERE } from '#component/bound-port.ts'
import { advertisedAddress } from '#control-plane/addresses.ts'
import type { Clock } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { ProgramError } from '#lib/program.ts'
import type { Random } from '#lib/random.ts'
import { StorageError } from '#storage/backend.ts'
import { openBackend } from '#storage/index.ts'

import { type KeyFiles, openSharedKeys } from './shared-keys.ts'

/** The files with the credentials for etcd; empty: none. */
export interface EtcdFiles {
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

export interface ReplicaPlan {
  readonly dataDir: string
  /** As `openBackend` takes it. */
  readonly datastore: string
  readonly etcd: EtcdFiles
  /** The token that opens the keys of the other replicas; undefined: the one in the data directory. */
  readonly replicaToken: string | undefined
  /** Where other replicas reach this one: a host, with or without a port. Undefined: where it listens. */
  readonly peerAddress: string | undefined
}

interface Tools {
  readonly clock: Clock
  readonly random: Random
  readonly readFile: (path: string) => Promise<string>
}

export function mayHaveReplicas(datastore: string): boolean {
  return /^https?:/.test(datastore)
}

/** Shares the keys in the data directory with all replicas: see `openSharedKeys`. Does nothing without etcd. */
export async function shareKeys(plan: ReplicaPlan, tools: Tools): Promise<void> {
  if (!mayHaveReplicas(plan.datastore)) return
  const { clock, random } = tools
  const etcd = { tls: await readCredentials(plan.etcd, tools) }
  const backend = await openBackend(plan.datastore, { clock, random, etcd, historyMs: Infinity })
  try {
    await openSharedKeys({ backend, files: keyFiles(plan.dataDir), token: plan.replicaToken, clock, random })
  } catch (cause) {
    if (!(cause instanceof StorageError)) throw cause
    throw new ProgramError(`Cannot read the keys of the server from the datastore: ${cause.message}`, { cause })
  } finally {
    await backend.close()
  }
}

async function readCredentials({ ca, certificate, key }: EtcdFiles, { readFile: read }: Tools): Promise<object> {
  return {
    ...(ca !== '' && { ca: await read(ca) }),
    ...(certificate !== '' && { certificate: await read(certificate), key: await read(key) }),
  }
}

function keyFiles(dataDir: string): KeyFiles {
  return {
    async read(name) {
      try {
        return await readFile(join(dataDir, name), 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
    async write(name, text) {
      const path = join(dataDir, name)
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      await writeFileAtomically(path, text, { mode: 0o600 })
    },
  }
}

/** Host and port for other replicas. */
export function peerAddressOf({ peerAddress }: ReplicaPlan, host: string, port: number): string {
  if (peerAddress !== undefined) return /:\d+$/.test(peerAddress) ? peerAddress : `${peerAddress}:${port}`
  const reachable = EVERYWHERE.has(host) ? advertisedAddress({ 'advertise-address': '', 'bind-address': host }) : host
  return `${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
