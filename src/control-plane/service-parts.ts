/** Addresses and ports of Services: who hands them out, and who puts right what was lost. */
import { hostname } from 'node:os'

import type { Registry } from '#apiserver/registry/registry.ts'
import { parseCidr } from '#lib/cidr.ts'
import type { Rounds } from '#lib/rounds.ts'
import { createAddressBook, serviceRanges } from '#resources/core/service/address-book.ts'
import type { ServiceAllocator } from '#resources/core/service/allocation.ts'
import { createServiceAllocator } from '#resources/core/service/allocator.ts'
import { createStoredLedger, PORT_ALLOCATIONS } from '#resources/core/service/port-ledger.ts'
import { startServiceRepair } from '#resources/core/service/repair-loop.ts'

import type { Site } from './site.ts'

export interface ServiceParts {
  readonly allocator: ServiceAllocator
  /** Resolves when Services can be given node ports. */
  startRepair(): Promise<Rounds>
}

export function createServiceParts({ plan, random, log }: Site, registry: Registry): ServiceParts {
  const { backend, atRest } = registry.services
  const { nodePorts: portRange } = plan
  const parts = {
    book: createAddressBook(registry),
    ports: createStoredLedger({ backend, resting: atRest.resting(PORT_ALLOCATIONS), range: portRange }),
    serviceCidrs: plan.serviceCidr.split(',').flatMap((text) => parseCidr(text) ?? []),
    portRange,
  }
  return {
    allocator: createServiceAllocator({
      ...parts,
      random,
      rangeObjects: () => serviceRanges(registry),
      report: (message, error) => log.error(error, message),
    }),
    startRepair: () =>
      startServiceRepair({
        ...parts,
        registry,
        hostname: hostname(),
        onError: (error) => log.error(error, 'Repairing what Services hold failed'),
      }),
  }
}
