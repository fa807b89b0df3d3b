/** Reports which attachable CSI volumes this node uses, and checks whether a volume is attached. */
import type { Node } from '#apis/core/v1.ts'
import type { VolumeAttachment } from '#apis/storage/v1.ts'
import { type Clock, sleep } from '#lib/clock.ts'

import { VolumeFault } from '../volume-fault.ts'
import { attachmentName } from './csi-names.ts'
import type { CsiSource } from './csi-source.ts'

export interface CsiAttachmentsOptions {
  readonly nodeName: string
  readonly clock: Clock
  readonly sources: {
    attachment(name: string): Promise<VolumeAttachment>
    /** From the API server; undefined until it was read. */
    node(): Node | undefined
  }
  /** Called when `volumesInUse` has changed. */
  readonly onInUse: () => void
}

/** Upstream's timeout for all volumes of a pod. */
const ATTACH_MS = 123_000
const LOOK_MS = 200

export class CsiAttachments {
  readonly #options: CsiAttachmentsOptions
  /** UIDs of the pods that use a volume, by unique name. */
  readonly #users = new Map<string, Set<string>>()

  constructor(options: CsiAttachmentsOptions) {
    this.#options = options
  }

  /** Unique names. */
  get inUse(): readonly string[] {
    return [...this.#users.keys()].sort()
  }

  use(unique: string, user: string): void {
    const users = this.#users.get(unique) ?? new Set()
    this.#users.set(unique, users.add(user))
    if (users.size === 1) this.#options.onInUse()
  }

  unuse(unique: string, user: string): void {
    const users = this.#users.get(unique)
    if (users?.delete(user) !== true || users.size > 0) return
    this.#users.delete(unique)
    this.#options.onInUse()
  }

  forget(uid: string): void {
    for (const unique of this.#users.keys()) this.unuse(unique, uid)
  }

  /** Waits until the volume is attached and the Node reports it as in use. Rejects with `Unattached`. */
  async until(unique: string, signal: AbortSignal): Promise<void> {
    const { sources, clock } = this.#options
    const untilMs = clock.elapsed() + ATTACH_MS
    for (;;) {
      const { volumesAttached = [], volumesInUse = [] } = sources.node()?.status ?? {}
      if (volumesAttached.some(({ name }) => name === unique) && volumesInUse.includes(unique)) return
      if (clock.elapsed() >= untilMs) throw new Unattached('context deadline exceeded')
      await sleep(clock, LOOK_MS, signal)
    }
  }

  /** The attachment metadata for the driver. */
  async publishContext({ handle, driver }: CsiSource): Promise<Map<string, string>> {
    const { sources, nodeName } = this.#options
    const name = attachmentName(handle, driver, nodeName)
    const fail = (text: string): never => {
      throw new VolumeFault('MountVolume.WaitForAttach failed', text)
    }
    const { status } = await sources.attachment(name).catch((error: Error) => {
      return fail(`volume ${handle} has GET error for volume attachment ${name}: ${error.message}`)
    })
    if (status?.attachError?.message !== undefined) fail(status.attachError.message)
    if (!status?.attached) fail(`volume ${handle} is not attached for volume attachment ${name}`)
    return new Map(Object.entries(status?.attachmentMetadata ?? {}))
  }
}

/** The volume was not attached in time. */
export class Unattached extends Error {
  override readonly name = 'Unattached'
}
