/**
 * Tracks the live API servers of the cluster. Each server stores its address in a key with a lease, so the key of a
 * killed server expires.
 */
import type { Endpoints } from '#apis/core/v1.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { type Backend, type LeaseId, prefixEnd, StorageError } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'

const PREFIX = '/registry/masterleases/'
/** Upstream's `DefaultEndpointReconcilerTTL`: one renewal, every 10 s, may fail. */
const LEASE_MS = 15_000
/** Upstream's name of the stored type, for the encryption configuration. */
const STORED = { group: '', resource: 'apiServerIPInfo' }

export interface EndpointLeases {
  /** Publishes `ip` for another lease duration. */
  renew(ip: string): Promise<void>
  /** Removes the key of `renew`, unless another server has published the same address. */
  release(): Promise<void>
  /** Removes the key of `ip`; true if there was one. */
  drop(ip: string): Promise<boolean>
  /** The addresses of all live servers, sorted. */
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
      const current = await keepAlive()
      const { items } = await backend.range({ start: key, keysOnly: true })
      // The key is missing, or bound to the lease of another server and would expire with it.
      if (items[0]?.lease !== current)
        await backend.commit([{ key, value: resting.seal(key, infoOf(ip)), lease: current }])
    },
    async release() {
      const current = lease
      lease = undefined
      try {
        if (current !== undefined) await backend.revokeLease(current)
      } catch (error) {
        // It has expired already.
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

/** An Endpoints object that contains only the address. */
function infoOf(ip: string): Buffer {
  const info: Endpoints = {
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: { generation: 1 },
    subsets: [{ addresses: [{ ip }] }],
  }
  return Buffer.from(encodeJson(info))
}
