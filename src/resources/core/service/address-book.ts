/** IPAddress objects through the registry, for a server's own allocator. */
import { IPAddresses, ServiceCIDRs, type ServiceCIDR } from '#apis/networking/v1.ts'
import { systemRequest } from '#apiserver/bootstrap/ensure.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import type { AddressBook } from './ip-pool.ts'

export function createAddressBook(registry: Registry): AddressBook {
  const request = systemRequest(IPAddresses, '')
  return {
    has(name) {
      const store = registry.storeOf(IPAddresses)
      return store?.collection.get(store.keyOf('', name)) !== undefined
    },
    async create(address) {
      try {
        await registry.storeOf(IPAddresses)?.create(request, address)
        return true
      } catch (error) {
        if (isAlreadyExists(error)) return false
        throw error
      }
    },
    async delete(name) {
      try {
        await registry.storeOf(IPAddresses)?.delete(request, name, {})
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
    },
  }
}

/** The ServiceCIDR objects there are now. */
export function serviceRanges(registry: Registry): readonly ServiceCIDR[] {
  const store = registry.storeOf(ServiceCIDRs)
  return store === undefined ? [] : [...store.collection.entries()].map(({ object }) => object as ServiceCIDR)
}
