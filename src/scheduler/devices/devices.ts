/** Tracks offered and allocated devices for all profiles of a scheduler. */
import { type DeviceClass, DeviceClasses, ResourceClaims, ResourceSlices } from '#apis/resource/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { epochMsOf } from '#meta/time.ts'
import { DEVICE_CLASS_PREFIX } from '#model/quota/pods.ts'

import type { Cluster } from '../cluster/cluster.ts'
import type { Handle } from '../framework/framework.ts'
import { EXTENDED_CLAIM } from './extended-resources.ts'
import { Inventory } from './inventory.ts'
import { Ledger } from './ledger.ts'
import { Selection } from './selection.ts'
import { taintRules } from './taint-rules.ts'

export class Devices {
  readonly inventory: Inventory = new Inventory()
  readonly ledger: Ledger = new Ledger()
  readonly selection: Selection = new Selection()
  readonly #of: Handle['of']

  constructor(handle: Handle) {
    const { of } = handle
    this.#of = of
    const slices = of(ResourceSlices)
    // Rules are few and change rarely.
    const tainted = taintRules(handle, () => {
      for (const slice of slices.list()) this.inventory.set(tainted(slice))
    })
    slices.listen({
      added: (slice) => this.inventory.set(tainted(slice)),
      updated: (slice, old) => (this.inventory.remove(old), this.inventory.set(tainted(slice))),
      deleted: (slice) => this.inventory.remove(slice),
    })
    of(ResourceClaims).addIndex('extended', ({ metadata: { annotations, ownerReferences = [] } }) =>
      annotations?.[EXTENDED_CLAIM] === 'true'
        ? ownerReferences.flatMap(({ uid, controller }) => (controller === true ? [uid] : []))
        : [],
    )
    of(ResourceClaims).listen({
      added: (claim) => this.ledger.observe(claim),
      updated: (claim, old) => {
        if (claim.metadata.uid !== old.metadata.uid) this.ledger.gone(old)
        this.ledger.observe(claim)
      },
      deleted: (claim) => this.ledger.gone(claim),
    })
    of(DeviceClasses).addIndex('resource', ({ metadata: { name }, spec: { extendedResourceName } }) => [
      `${DEVICE_CLASS_PREFIX}${name}`,
      ...(extendedResourceName === undefined ? [] : [extendedResourceName]),
    ])
  }

  classOf(name: string): DeviceClass | undefined {
    return this.#of(DeviceClasses).get(name)
  }

  /** The device class for an extended resource; the newest of several. */
  classFor(resource: string): DeviceClass | undefined {
    const madeMs = ({ metadata }: DeviceClass): number => epochMsOf(metadata.creationTimestamp ?? '')
    const [newest] = this.#of(DeviceClasses)
      .by('resource', resource)
      .sort((a, b) => madeMs(b) - madeMs(a) || compareText(a.metadata.name ?? '', b.metadata.name ?? ''))
    return newest
  }
}

const known = new WeakMap<Cluster, Devices>()

/** One for the whole scheduler, created on first use. */
export function devicesOf(handle: Handle): Devices {
  const devices = known.get(handle.cluster) ?? new Devices(handle)
  known.set(handle.cluster, devices)
  return devices
}
