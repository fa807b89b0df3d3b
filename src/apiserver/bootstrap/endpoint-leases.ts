/**
 * Which servers of the cluster are there: each keeps a key with its address under a lease of the store, so that a server
 * which is killed vanishes when its lease ends. Keys and values are upstream's, so servers of both kinds see each other.
 */
import type { Endpoints } from '#apis/core/v1.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { type Backend, type LeaseId, prefixEnd, StorageError } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'

const PREFIX = '/registry/masterleases/'
/** Upstream's `DefaultEndpointReconcilerTTL`: one renewal, every 10 s, may fail. */
const LEASE_MS = 15_000
/** Upstream's name of what is stored there, for the configuration of encryption. */
const STORED = { group: '', resource: 'apiServerIPInfo' }

export interface EndpointLeases {
  /** Says for another lease that `ip` is there. */
  renew(ip: string): Promise<void>
  /** Takes back what `renew` said. Another server that says the same goes on. */
  release(): Promise<void>
  /** Removes whatever is there of `ip`; whether there was something. */
  drop(ip: string): Promise<boolean>
  /** The addresses of all servers that are there, sorted. */
  list(): Promise<string[]>
}

export function createEndpointLeases(backend: Backend, atRest: AtRest): EndpointLeases {
  const resting = atRest.resting(STORED)
  let lease: LeaseId | undefined

  const keepAlive = async (): Promise<LeaseId> => {
    if (lease !== undefined) {
      try {
        await backend.keepAliveLease(lease)
        return lease
      } catch (error) {
        if (!(error instanceof StorageError) || error.code !== 'lease-not-found') throw error
      }
    }
    lease = await backend.grantLease(LEASE_MS)
    return lease
  }
  return {
    async renew(ip) {
      const key = `${PREFIX}${ip}`
      const held = await keepAlive()
      const { items } = await backend.range({ start: key, keysOnly: true })
      // Gone, or of a server before us or beside us: then it would go when that one's lease ends.
      if (items[0]?.lease !== held) await backend.commit([{ key, value: resting.seal(key, infoOf(ip)), lease: held }])
    },
    async release() {
      const held = lease
      lease = undefined
      try {
        if (held !== undefined) await backend.revokeLease(held)
      } catch (error) {
        // It has ended by itself.
        if (!(error instanceof StorageError) || error.code !== 'lease-not-found') throw error
      }
    },
    async drop(ip) {
      const result = await backend.commit([{ key: `${PREFIX}${ip}`, value: null }])
      return result.ok && result.previous[0] !== undefined
    },
    async list() {
      const { items } = await backend.range({ start: PREFIX, end: prefixEnd(PREFIX), keysOnly: true })
      return items.map(({ key }) => key.slice(PREFIX.length))
    },
  }
}

/** An Endpoints object with nothing but the address. */
function infoOf(ip: string): Buffer {
  const info: Endpoints = {
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: { generation: 1 },
    subsets: [{ addresses: [{ ip }] }],
  }
  return Buffer.from(encodeJson(info))
}
