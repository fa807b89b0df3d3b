/** Reads and writes IPAddress objects through the registry, for the allocator of Service addresses. */
import { IPAddresses, ServiceCIDRs, type ServiceCIDR } from '#apis/networking/v1.ts'
import type { Registry } from '#apiserver/registry/registry.ts'

import type { AddressBook } from './ip-pool.ts'

export function createAddressBook(registry: Registry): AddressBook {
  return {
    has(name) {
      const store = registry.storeOf(IPAddresses)
      return store?.collection.get(store.keyOf('', name)) !== undefined
    },
    create: (address) => registry.writer.ensure(IPAddresses, address),
    async delete(name) {
      await registry.writer.delete(IPAddresses, { name })
    },
  }
}

/** The current ServiceCIDR objects. */
export function serviceRanges(registry: Registry): readonly ServiceCIDR[] {
  const store = registry.storeOf(ServiceCIDRs)
  return store === undefined ? [] : [...store.collection.entries()].map(({ object }) => object as ServiceCIDR)
}
