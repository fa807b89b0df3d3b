/**
 * Volumes that others attach to this node: which are in use here, so that nobody detaches them, and whether one has been attached.
 */
import type { Node } from '#apis/core/v1.ts'
import type { VolumeAttachment } from '#apis/storage/v1.ts'
import { type Clock, sleep } from '#lib/clock.ts'

import { VolumeFault } from '../volume-plugin.ts'
import { attachmentName } from './csi-names.ts'
import type { CsiSource } from './csi-source.ts'

export interface CsiAttachmentsOptions {
  readonly nodeName: string
  readonly clock: Clock
  readonly sources: {
    attachment(name: string): Promise<VolumeAttachment>
    /** As the API server has it; undefined until it was read. */
    node(): Node | undefined
  }
  /** What the node says to be in use has changed. */
  readonly onInUse: () => void
}

/** As long as upstream waits for all volumes of a pod. */
const ATTACH_MS = 123_000
const LOOK_MS = 200

export class CsiAttachments {
  readonly #options: CsiAttachmentsOptions
  /** By unique name, with the uids of pods that have it. */
  readonly #users = new Map<string, Set<string>>()

  constructor(options: CsiAttachmentsOptions) {
    this.#options = options
  }

  /** By unique name. */
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

  /** Others attach; they must know that it is used before it is. Rejects with `Unattached`. */
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

  /** What whoever attached it left for the driver. */
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

/** Nobody has attached it in time. */
export class Unattached extends Error {
  override readonly name = 'Unattached'
}
